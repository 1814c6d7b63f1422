"""The command line: plans, runs, counts."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter

from . import plan, space, tracer, trial, workload
from .oracle import Violation
from .tracer import STORE

SPACE = ["fill", "limit"]
ATTEMPTS = 4
QUICK = ["killed", "new", "more"] + SPACE
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main(arguments):
    """Runs the program.

    - Returns: 0 when all went well, 1 when not, 2 when parts could not be run here.
    """
    options = _parse(arguments)
    if reason := tracer.problem():
        print(f"not run: {reason}")
        return 2
    tool = options.logtool or _build()
    directory = tempfile.mkdtemp(prefix="realfaults-", dir=options.directory)
    campaign = Campaign(options, os.path.abspath(tool), directory)
    try:
        return campaign.run()
    finally:
        if not campaign.failures:
            shutil.rmtree(directory, ignore_errors=True)


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="realfaults",
        description="Lets calls on the real file system fail under a running logtool, fills disks"
        " up, and looks whether anything is lost.",
        epilog="Exit status: 0 passed, 1 failed, 2 passed but not all of it could be run here.")
    parser.add_argument("--logtool", metavar="FILE", help="the tool; built when not given")
    parser.add_argument("--directory", metavar="DIR", help="where the stores are made")
    parser.add_argument("--quick", action="store_true", help="a few faults of every kind")
    parser.add_argument(
        "--most", metavar="N", type=int, help="occurrences of each call at most, spread evenly")
    parser.add_argument("--minutes", metavar="M", type=float, help="stop after so long")
    parser.add_argument(
        "--workload", action="append", choices=list(workload.ABOUT) + SPACE,
        help="only this; may be given again")
    parser.add_argument("--call", action="append", choices=plan.CALLS, help="only this call")
    parser.add_argument("--what", action="append", metavar="ERRNO", help="only this fault")
    parser.add_argument(
        "--only", metavar="CALL:WHAT:N[+]", help="this one fault, as a failure names it")
    return parser.parse_args(arguments)


def _build():
    print("building ...", file=sys.stderr)
    command = ["swift", "build", "-c", "release", "--package-path", ROOT]
    built = subprocess.run(
        command + ["--product", "logtool"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if built.returncode != 0:
        sys.exit(built.stdout.decode(errors="replace"))
    shown = subprocess.run(command + ["--show-bin-path"], check=True, stdout=subprocess.PIPE)
    return os.path.join(shown.stdout.decode().strip(), "logtool")


class Campaign:
    """Runs all faults and keeps account."""

    def __init__(self, options, tool, directory):
        self.options = options
        self.tool = tool
        self.directory = directory
        self.failures = []
        self.not_run = []
        self.tried = Counter()
        self.silent = []
        # By call and fault: how often it fired, stopped the tool, and was done without.
        self.fired = Counter()
        self.stopped = Counter()
        self.absorbed = Counter()
        self.short_writes = 0
        self.started = time.monotonic()

    @property
    def is_late(self):
        minutes = self.options.minutes
        return minutes is not None and time.monotonic() - self.started > minutes * 60

    def run(self):
        names = self.options.workload or (
            QUICK if self.options.quick else list(workload.ABOUT) + SPACE)
        for number, name in enumerate(names):
            try:
                if name in SPACE:
                    space.run(self, name)
                else:
                    # The kinds of faults are shared out; who comes last takes all that are left.
                    self.run_workload(name, max(len(names) - len(SPACE) - number, 1))
            except Violation as violation:
                self.fail(name, None, violation)
        return self.summarize()

    def run_workload(self, name, share):
        load = workload.make(
            name, self.tool, os.path.join(self.directory, name), self.options.quick)
        calls = load.narrow(load.rehearse())
        if self.options.only:
            injections = [plan.Injection.parse(self.options.only)]
        else:
            whats = self.options.what or (plan.COMMON if name == "large" else None)
            injections = plan.injections(
                calls, self.options.most or 100, self.options.call, whats)
            if self.options.quick:
                injections = self.pick(injections, share)
        print(f"{name}: {workload.ABOUT[name]}; {len(injections)} faults", flush=True)
        for done, injection in enumerate(injections):
            if self.is_late:
                self.not_run.append(f"{name}: {len(injections) - done} faults, for want of time")
                break
            self.run_trial(load, injection)

    def pick(self, injections, share):
        """One fault of every kind, each at another place, and no kind twice.

        - Parameter share: of the kinds that are left only every so many.
        """
        kinds = {}
        for injection in injections:
            kind = injection.call, injection.what
            # Interruptions are the long form's.
            if injection.what in plan.COMMON[:3] and kind not in self.tried:
                kinds.setdefault(kind, []).append(injection)
        members = list(kinds.values())[::share]
        return [among[number * 7 % len(among)] for number, among in enumerate(members)]

    def run_trial(self, load, injection):
        self.tried[injection.call, injection.what] += 1
        try:
            # The thread in the background may have made the call of the main thread this time.
            for _ in range(ATTEMPTS):
                outcome = trial.run(load, injection)
                if outcome.fired:
                    break
        except Violation as violation:
            self.fail(load.name, injection, violation)
            return
        if not outcome.fired:
            self.silent.append(f"{load.name} {injection}")
        self.count(injection.call, injection.what, outcome.status, len(outcome.fired))

    def count(self, call, what, status, fired):
        self.fired[call, what] += fired
        (self.absorbed if status == 0 else self.stopped)[call, what] += 1

    def fail(self, name, injection, violation):
        """Says what went wrong, and keeps the store."""
        self.failures.append(str(violation))
        text = f"FAILED {name}"
        if injection:
            text += f" {injection}"
        print(f"{text}: {violation}", flush=True)
        store = os.path.join(self.directory, name, STORE)
        if os.path.isdir(store):
            kept = os.path.join(self.directory, f"failure-{len(self.failures)}")
            shutil.copytree(store, kept)
            print(f"  the store as it is now: {kept}")
        if injection:
            print(f"  again: Tools/realfaults --workload {name} --only {injection}")

    def summarize(self):
        if self.tried:
            print(f"{'call':12}{'fault':12}{'runs':>6}{'fired':>8}{'stopped':>9}{'absorbed':>10}")
        for call, what in self.tried:
            print(
                f"{call:12}{what:12}{self.tried[call, what]:6}{self.fired[call, what]:8}"
                f"{self.stopped[call, what]:9}{self.absorbed[call, what]:10}")
        unused = [
            call for call in plan.CALLS if not any(tried == call for tried, _ in self.tried)]
        options = self.options
        if unused and not (options.workload or options.call or options.only or self.is_late):
            print(f"never called on a store, so nothing to fail: {', '.join(unused)}")
        for fault in self.silent:
            print(f"FAILED {fault}: did not fire")
        for reason in self.not_run:
            print(f"NOT RUN {reason}")
        if self.short_writes:
            print(f"short writes at the end of a disk: {self.short_writes}")
        bad = len(self.failures) + len(self.silent)
        seconds = time.monotonic() - self.started
        print(
            f"{sum(self.tried.values())} runs, {sum(self.fired.values())} faults fired, "
            f"{bad} failures, {len(self.not_run)} parts not run, {seconds:.0f} s")
        if bad:
            return 1
        return 2 if self.not_run else 0
