"""The work that is done to a store while calls fail, and the state that it begins in."""

import base64
import json
import os
import random
import shutil
import subprocess

from . import plan, tracer
from .oracle import Oracle, Violation
from .tracer import STORE

FIXTURES = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "Tests", "Fixtures")


class Workload:
    """An import, or a compaction, of which every part can be repeated."""

    def __init__(self, name, tool, directory, is_small):
        self.name = name
        self.tool = tool
        self.directory = directory
        # With no more lines than it takes to make the same calls.
        self.is_small = is_small
        # The store before it, if there is one, and how many lines that holds.
        self.template = None
        self.before = 0
        # Where the store stands, and what is done to it.
        self.store = STORE
        self.arguments = []
        self.oracle = None
        # Whether closing merges segments.
        self.merges = False
        # How many lines a store may hold after the command, wherever that has ended.
        self.ends = set()
        # Which of the calls are to fail.
        self.narrow = lambda calls: calls

    def path(self, name):
        return os.path.join(self.directory, name)

    @property
    def command(self):
        """The command that runs while calls fail."""
        return self._command(self.arguments, self.store)

    def _command(self, arguments, store):
        return [self.tool, arguments[0], store or self.store] + list(arguments[1:])

    def logtool(self, *arguments, store=None):
        """Runs the tool without a fault."""
        return tracer.run(self._command(arguments, store), self.directory)

    def must(self, *arguments, store=None):
        """Runs the tool without a fault, which has to succeed."""
        ended = self.logtool(*arguments, store=store)
        if ended.status != 0 or ended.is_hung:
            raise Violation(
                f"logtool {' '.join(arguments)} ends with {ended.status}: {ended.talk.strip()}")
        return ended.output

    def write(self, name, lines):
        with open(self.path(name), "wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))

    def reset(self):
        """Makes the store what it is before the command."""
        shutil.rmtree(self.path(self.store), ignore_errors=True)
        if self.template:
            shutil.copytree(self.path(self.template), self.path(self.store))

    def rehearse(self):
        """Runs the command without a fault.

        - Returns: its calls on the store and the output.
        """
        self.reset()
        ended, calls, _ = tracer.trace(self.command, self.directory, plan.CALLS)
        if ended.status != 0:
            raise Violation(f"without a fault {self.name} ends with {ended.status}: {ended.talk}")
        self.ends = {self.before, len(self.oracle.lines)} | {
            self.before + count for count in committed(ended.output)}
        self.oracle.learn(self.must("export", "--history", "--quiet"))
        self.oracle.check_state(self.must("export", "--quiet"), len(self.oracle.lines))
        return [call for call in calls if call.kind]


def committed(output):
    """The lines that an import has acknowledged, one by one."""
    counts = []
    for line in output.splitlines():
        try:
            counts.append(json.loads(line)["committed"])
        except (ValueError, KeyError, TypeError):
            # The last line of a process that was killed.
            pass
    return counts


def fixture(name):
    """The lines of one of the files that the tests have."""
    ended = subprocess.run(
        ["zstd", "-dcq", os.path.join(FIXTURES, name + ".ndjson.zst")], check=True,
        stdout=subprocess.PIPE)
    return ended.stdout.splitlines()


def noise(count, length):
    """Lines that do not compress, always the same."""
    chance = random.Random(1)
    return [
        json.dumps({
            "key": f"noise/{number:06}", "labels": [f"l{number % 7}"],
            "value": base64.b64encode(chance.randbytes(length)).decode(),
            "time": "2026-01-01T00:00:00Z",
        }).encode() for number in range(count)]


def make(name, tool, directory, is_small=False):
    """Makes one of the workloads, in a directory of its own."""
    os.makedirs(directory)
    workload = Workload(name, tool, directory, is_small)
    _MAKERS[name](workload)
    return workload


def _import(workload, base, more):
    """Sets an import of `more` up, upon a store that holds `base`."""
    workload.oracle = Oracle(base + more)
    workload.before = len(base)
    workload.write("more.ndjson", more)
    workload.arguments = ["import", "more.ndjson", "--output", "jsonl", "--quiet"]


def _new(workload):
    lines = fixture("debian-sample") + fixture("file-history")
    _import(workload, [], lines[1300:2600] if workload.is_small else lines)


def _pieces(workload, lines, count):
    """A store of `count` small segments, closed cleanly."""
    size = -(-len(lines) // count)
    for start in range(0, len(lines), size):
        workload.write("piece.ndjson", lines[start:start + size])
        workload.must("import", "piece.ndjson", "--quiet", store="BEFORE")
    workload.template = "BEFORE"


def _more(workload):
    # As many small segments as closing merges.
    workload.merges = True
    base = fixture("debian-sample")[:752]
    _pieces(workload, base, 16)
    _import(workload, base, fixture("debian-sample-updates"))


def _killed(workload):
    base, more = fixture("file-history"), fixture("debian-sample")
    if workload.is_small:
        base, more = base[:1300], more[:1100]
    workload.write("base.ndjson", base)
    # Before the second batch is written: the first is there, and MANIFEST knows nothing of it.
    command = [workload.tool, "import", STORE, "base.ndjson", "--quiet"]
    _, calls, _ = tracer.trace(command, workload.directory, ["pwrite64"])
    writes = [call.nth for call in calls if call.kind == "log"]
    shutil.rmtree(workload.path(STORE))
    injection = plan.Injection("pwrite64", plan.KILLED, writes[2], False)
    tracer.trace(command, workload.directory, ["pwrite64"], injection)
    status = json.loads(workload.must("stat", "--output", "json"))
    kept = status["sequence"]
    if not 0 < kept < len(base):
        raise Violation(f"an import that was killed has left {kept} entries")
    _tear(workload.path(STORE))
    os.rename(workload.path(STORE), workload.path("BEFORE"))
    workload.template = "BEFORE"
    _import(workload, base[:kept], more)


def _tear(store):
    """Puts the beginning of a frame behind the last one."""
    log = os.path.join(store, "log")
    path = os.path.join(log, max(os.listdir(log)))
    with open(path, "r+b") as file:
        used = len(file.read().rstrip(b"\0"))
        file.seek(used + -used % 8)
        file.write(random.Random(2).randbytes(5000))


def _compact(workload):
    base = fixture("debian-sample")[:1000] + fixture("debian-sample-updates")
    _pieces(workload, base, 4)
    workload.oracle = Oracle(base)
    workload.before = len(base)
    workload.arguments = ["compact", "--quiet"]


def _keys(workload):
    _import(workload, [], [
        b'{"key":"key/%07d","value":"","time":"2026-01-01T00:00:00Z"}' % number
        for number in range(40_000)])


def _large(workload):
    # More than a segment takes, so that one is sealed and the next begun on the way.
    _import(workload, [], noise(9_500, 7_500))
    workload.narrow = _between_segments


def _between_segments(calls):
    """The calls that begin the second segment; the rest is as in a small import."""
    begun = [
        place for place, call in enumerate(calls)
        if call.name == "openat" and call.kind == "log"]
    if len(begun) < 2:
        raise Violation("the large import fits into one segment")
    return calls[begun[1] - 1:begun[1] + 20]


ABOUT = {
    "new": "an import into a new store",
    "more": "an import into a store of small segments, which closing merges",
    "killed": "an import into a store whose writer was killed, with a torn tail",
    "compact": "a compaction",
    "keys": "an import of keys alone, whose index image is longer than their log",
    "large": "an import that fills a segment and begins the next",
}
_MAKERS = {
    "new": _new, "more": _more, "killed": _killed, "compact": _compact,
    "keys": _keys, "large": _large}
