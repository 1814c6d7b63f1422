"""The command line of the reader."""

import argparse
import os
import sys

from .faults import Fault, Usage
from .store import Store

_FLUSH_BYTES = 1 << 18


def main(arguments):
    """Runs the program.

    - Returns: its exit status.
    """
    parser = argparse.ArgumentParser(
        prog="read-store",
        description="Reads a Tidemark store without the engine, from FileFormat.md alone.",
        epilog="Exit status: 0 done, 1 no longer kept, 2 findings, 64 usage, 65 damaged,"
        " 66 no store, 74 input or output, 76 format too new.")
    parser.add_argument("store", metavar="STORE", help="the store's directory")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--at", metavar="SEQ", type=int, help="the state at a sequence")
    what.add_argument("--history", action="store_true", help="every entry that is kept")
    what.add_argument("--check", action="store_true", help="check every checksum, and say so")
    try:
        options = parser.parse_args(arguments)
        if options.at is not None and options.at < 0:
            parser.error("a sequence is not negative")
    except SystemExit as ended:
        return Usage.status if ended.code else 0
    try:
        return _run(options)
    except Fault as fault:
        print(f"read-store: {fault}", file=sys.stderr)
        return fault.status
    except BrokenPipeError:
        # The reader of the output has gone; Python would complain about it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"read-store: {error}", file=sys.stderr)
        return 74


def _run(options):
    if options.check:
        from .check import Check

        return Check(options.store).run()
    store = Store(options.store).open()
    _write(store.history() if options.history else store.state(options.at))
    return 0


def _write(lines):
    """Writes lines in pieces that are worth a call."""
    output = sys.stdout.buffer
    pending, size = [], 0
    for line in lines:
        pending.append(line)
        size += len(line)
        if size >= _FLUSH_BYTES:
            output.write(b"".join(pending))
            pending, size = [], 0
    output.write(b"".join(pending))
    output.flush()
