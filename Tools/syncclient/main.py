"""The command line of the client."""

import argparse
import json
import os
import sys
from collections import Counter

from . import attachment, wire
from .connection import Connection
from .faults import Fault, Usage
from .session import Session
from .state import State, locked

_VALUE_BYTES_MAX = 1 << 20
_TOKEN_BYTES_MAX = 8_192
_NOT_FOUND, _FINDINGS, _INPUT_OUTPUT = 1, 2, 74
_READING = ("get", "list", "status")


def main(arguments):
    """Runs the program.

    - Returns: its exit status.
    """
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as ended:
        return Usage.status if ended.code else 0
    try:
        if options.command in _READING:
            return options.run(options, State.load(options.state))
        with locked(options.state):
            if options.command == "init":
                return _init(options)
            return options.run(options, State.load(options.state))
    except Fault as fault:
        print(f"sync-client: {fault}", file=sys.stderr)
        return fault.status
    except BrokenPipeError:
        # The reader of the output has gone; Python would complain about it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"sync-client: {error}", file=sys.stderr)
        return _INPUT_OUTPUT


def _parser():
    parser = argparse.ArgumentParser(
        prog="sync-client",
        description="Replicates keys with a sync server, from WireProtocol.md alone.",
        epilog="Exit status: 0 done, 1 not found or refused, 2 conflicts or differences, 3 begin"
        " anew with `restart`, 64 usage, 65 damaged state file, 66 none, 69 no answer, 74 input or"
        " output, 75 in use, 76 answer that makes no sense, 77 no permission.")
    parser.add_argument("--state", metavar="FILE", default="sync-client.json")
    parser.add_argument("--token-file", metavar="FILE", help="else TIDEMARK_TOKEN is the token")
    parser.add_argument("--timeout", metavar="SECONDS", type=int, default=30)
    parser.add_argument("--attempts", metavar="COUNT", type=int, default=4)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name, run, what):
        command = commands.add_parser(name, help=what)
        command.set_defaults(run=run)
        return command

    init = add("init", _init, "make a state file")
    init.add_argument("url", metavar="URL")
    init.add_argument("--push-only", action="store_true", help="for a client that never pulls")
    put = add("put", _put, "give a key a value")
    put.add_argument("key", metavar="KEY")
    put.add_argument("value", metavar="VALUE", help="- for the standard input")
    put.add_argument("--label", metavar="LABEL", action="append", default=[])
    put.add_argument("--attach", metavar="FILE", help="sent with the key; keep it until then")
    add("delete", _delete, "take a key away").add_argument("key", metavar="KEY")
    get = add("get", _get, "print a key's value")
    get.add_argument("key", metavar="KEY")
    get.add_argument("--remote", action="store_true", help="what the server has, as far as known")
    fetch = add("fetch", _fetch, "write the attachment of a key of the server's to a file")
    fetch.add_argument("key", metavar="KEY")
    fetch.add_argument("file", metavar="FILE")
    add("list", _list, "print everything, as JSON lines")
    add("status", _status, "print what is pending, and what waits for a decision")
    add("push", _push, "send what is pending")
    add("pull", _pull, "take what others have written")
    add("compare", _compare, "compare sums with the server")
    resolve = add("resolve", _resolve, "decide on what the server did not take")
    resolve.add_argument("key", metavar="KEY")
    side = resolve.add_mutually_exclusive_group(required=True)
    side.add_argument("--mine", action="store_true", help="send it once more, upon the server's")
    side.add_argument("--theirs", action="store_true", help="drop it")
    add("restart", _restart, "begin anew under another name; no change is lost")
    return parser


def _session(options, state):
    return Session(
        state, Connection(
            state.url, _token(options), max(1, options.timeout), max(1, options.attempts)))


def _token(options):
    if options.token_file:
        with open(options.token_file, "rb") as file:
            token = file.read(_TOKEN_BYTES_MAX + 1).strip().decode("ascii", "replace")
    else:
        token = os.environ.get("TIDEMARK_TOKEN", "")
    if not all("!" <= c <= "~" for c in token) or len(token) > _TOKEN_BYTES_MAX:
        raise Usage("the token is no token")
    return token


def _shown(key):
    """A key as it can be shown anywhere, in one line."""
    return json.dumps(key)


# Commands that need no server


def _init(options):
    Connection(options.url)
    State.create(options.state, options.url, options.push_only)
    return 0


def _put(options, state):
    if options.value == "-":
        value = wire.from_bytes(sys.stdin.buffer.read(_VALUE_BYTES_MAX + 1))
    else:
        value = wire.from_bytes(os.fsencode(options.value))
    labels = sorted({wire.from_bytes(os.fsencode(label)) for label in options.label},
                    key=wire.to_bytes)
    if len(wire.to_bytes(value)) > _VALUE_BYTES_MAX:
        raise Usage(f"a value has {_VALUE_BYTES_MAX} bytes at most, for this client")
    sizes = [len(wire.to_bytes(label)) for label in labels]
    if len(sizes) > wire.LABELS_MAX or not all(1 <= s <= wire.LABEL_BYTES_MAX for s in sizes):
        raise Usage(
            f"at most {wire.LABELS_MAX} labels, each of 1 to {wire.LABEL_BYTES_MAX} bytes")
    name = path = None
    if options.attach:
        path = os.path.abspath(options.attach)
        name = attachment.of_file(path)
    state.edit(_key(options), value, labels, name, path)
    state.save()
    return 0


def _key(options):
    key = wire.from_bytes(os.fsencode(options.key))
    if not 1 <= len(wire.to_bytes(key)) <= wire.KEY_BYTES_MAX:
        raise Usage(f"a key has 1 to {wire.KEY_BYTES_MAX} bytes")
    return key


def _not_found(key):
    print(f"sync-client: nothing at {_shown(key)}", file=sys.stderr)
    return _NOT_FOUND


def _delete(options, state):
    key = _key(options)
    if not state.held(key):
        return _not_found(key)
    state.edit(key, None, None)
    state.save()
    return 0


def _get(options, state):
    key = _key(options)
    held = state.remote.get(key) if options.remote else state.held(key)
    if not held or "value" not in held:
        return _not_found(key)
    sys.stdout.buffer.write(wire.to_bytes(held["value"]))
    sys.stdout.buffer.flush()
    return 0


def _list(options, state):
    for key in state.keys():
        held = state.held(key)
        print(json.dumps({
            **wire.field("key", key), **wire.field("value", held["value"]),
            **wire.list_field("labels", held["labels"]),
            **({"attachment": held["attachment"]} if "attachment" in held else {})}))
    return 0


def _status(options, state):
    pending = state.pending.items()
    print(f"{sum('waits' not in change for _, change in pending)} pending,"
          f" {len(state.in_flight.get('changes', []))} in flight,"
          f" {sum('waits' in change for _, change in pending)} to decide,"
          f" pulled through {state.cursor}")
    for key, change in sorted(pending):
        if "waits" in change:
            print(f"{_shown(key)}: {change['waits']}")
    return 0


def _resolve(options, state):
    state.decide(_key(options), options.mine)
    state.save()
    return 0


# Commands that call


def _push(options, state):
    verdicts = _session(options, state).push()
    for key, name, words in verdicts:
        if words:
            print(f"{_shown(key)}: {name}: {words}", file=sys.stderr)
    counts = Counter(name for _, name, _ in verdicts)
    print(f"pushed {len(verdicts)}" + "".join(f", {counts[n]} {n}" for n in sorted(counts)))
    return _FINDINGS if counts["conflict"] or counts["rejected"] else 0


def _pull(options, state):
    print(f"pulled {_session(options, state).pull()}, through {state.cursor}")
    return 0


def _fetch(options, state):
    _session(options, state).fetch(_key(options), options.file)
    return 0


def _compare(options, state):
    found = _session(options, state).compare()
    for sign, keys in (("-", found.only_here), ("+", found.only_there), ("*", found.different)):
        for key in sorted(keys):
            print(f"{sign} {_shown(key)}")
    counted = f"{found.comparisons} comparison{'s' if found.comparisons > 1 else ''}"
    print(f"{'different' if found else 'equal'}, {counted}")
    return _FINDINGS if found else 0


def _restart(options, state):
    print(f"pulled {_session(options, state).restart()}, through {state.cursor}")
    return 0
