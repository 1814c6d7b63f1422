"""The command line: which faults, how many, for how long."""

import argparse
import os
import random
import signal
import subprocess
import sys
import time

from syncclient.faults import Fault

from . import Skipped, Violation, connections, kills, losses, pooler, races, selfcheck, stalls

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# The faults of each campaign, and how many unless it is said.
_KINDS = {
    "selfcheck": (selfcheck.selfcheck, 1),
    "servers": (kills.servers, 200),
    "postgres": (kills.postgres, 100),
    "sessions": (kills.sessions, 200),
    "freezes": (kills.freezes, 20),
    "epochs": (kills.epochs, 90),
    "failover": (losses.failover, 50),
    "hung": (losses.hung, 5),
    "twoprimaries": (losses.two_primaries, 10),
    "restore": (losses.restore, 12),
    "disk": (stalls.disk, 3),
    "locks": (stalls.locks, 2),
    "pooler": (pooler.pooler, 30),
    "cuts": (connections.cuts, 200),
    "races": (races.races, 3_000),
    "names": (races.names, 20),
    "suite": (pooler.suite, 1),
}


def main(arguments):
    """Runs the program.

    - Returns: 0 when all went well, 1 when not, 2 when parts could not be run here.
    """
    # Whoever ends it by a signal wants its processes to end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = _parser().parse_args(arguments)
    options.server = os.path.abspath(options.server or _build())
    status = 0
    for kind in _KINDS if options.kind == "all" else [options.kind]:
        run, count = _KINDS[kind]
        status = max(status, _run(kind, run, count, argparse.Namespace(**vars(options))))
    return status


def _parser():
    parser = argparse.ArgumentParser(
        prog="pgfaults",
        description="Breaks what stands around sync servers over PostgreSQL while devices write,"
        " and looks whether anything is lost, doubled or stuck.",
        epilog="Exit status: 0 passed, 1 failed, 2 passed but not all of it could be run here.")
    parser.add_argument("kind", choices=[*_KINDS, "all"], help="what breaks")
    parser.add_argument("--server", metavar="PATH", help="tidemark-server; built when not given")
    parser.add_argument("--directory", metavar="DIR", help="where processes keep their files")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--count", type=int, help="how many faults")
    parser.add_argument("--seconds", type=float, default=3_600, help="no fault after so long")
    return parser


def _build():
    """Builds the server with PostgreSQL.

    - Returns: its path.
    """
    print("building ...", file=sys.stderr)
    command = [
        "swift", "build", "--package-path", os.path.join(_ROOT, "Tools", "SyncServer"),
        "--traits", "PostgreSQL"]
    built = subprocess.run(
        [*command, "--product", "tidemark-server"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    if built.returncode:
        sys.exit(built.stdout.decode(errors="replace"))
    shown = subprocess.run([*command, "--show-bin-path"], check=True, stdout=subprocess.PIPE)
    return os.path.join(shown.stdout.decode().strip(), "tidemark-server")


def _run(kind, run, count, options):
    from .trial import Trial

    options.count = count if options.count is None else options.count
    print(f"{kind}: seed {options.seed}, {options.count} faults", flush=True)
    start = time.monotonic()
    trial = Trial(options, kind)
    status, words = 0, "passed"
    try:
        with trial:
            run(trial)
    except (Violation, Fault) as violation:
        status, words = 1, f"FAILED: {violation}"
    except Skipped as reason:
        status, words = 2, f"skipped: {reason}"
    counted = ", ".join(f"{value} {what}" for what, value in trial.counts.items())
    print(f"{kind}: {words}\n  {counted} in {time.monotonic() - start:.0f} s", flush=True)
    return status
