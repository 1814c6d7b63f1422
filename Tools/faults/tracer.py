"""Runs programs under strace: counts calls, and makes some of them fail."""

import os
import re
import shutil
import signal
import subprocess
from collections import namedtuple

SECONDS = 120
# The store's directory, by which its files are known in a trace.
STORE = "STORE"

Call = namedtuple("Call", "name nth kind result error asked")
"""A call of the main thread: how many of its name came before, and what it was about."""

Ended = namedtuple("Ended", "status output talk is_hung")

_LINE = re.compile(r"^(\d+) +(\w+)\((.*)$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
_RESULT = re.compile(r"\) *= (-?\d+|\?)(?:<[^>]*>)?(?: ([A-Z]+))?")
_DESCRIPTOR = re.compile(r"^\d+<([^>]*)>")
_QUOTED = re.compile(r'"([^"]*)"')
_ASKED = re.compile(r", (\d+), \d+\) *=")


def problem():
    """Why nothing can be traced here; None when it can."""
    if os.uname().sysname != "Linux":
        return "strace is for Linux, and so is this"
    if not shutil.which("strace"):
        return "strace is missing; install it (apt-get install strace)"
    tried = run(["strace", "-f", "-o", os.devnull, "-e", "inject=fsync:error=EIO", "true"])
    if tried.status != 0:
        lines = tried.talk.strip().splitlines()
        return "tracing is not allowed here (ptrace): " + (lines[0] if lines else "no reason given")
    return None


def run(command, directory=None, environment=None):
    """Runs a program to its end, which has to come within two minutes."""
    process = subprocess.Popen(
        command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
        env={**os.environ, **(environment or {})})
    is_hung = False
    try:
        output, talk = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        # The tracer and what it traces.
        os.killpg(process.pid, signal.SIGKILL)
        output, talk = process.communicate()
        is_hung = True
    return Ended(process.returncode, output, talk.decode(errors="replace"), is_hung)


def trace(command, directory, names, injection=None):
    """Runs a program under strace.

    - Parameters:
      - directory: where it runs and where the trace is left.
      - names: the calls to note.
    - Returns: how it ended, the calls, and those among them that were made to fail.
    """
    # Calls that a processor's table does not have are passed over.
    names = ",".join("?" + name for name in names)
    path = os.path.join(directory, "trace")
    tracer = ["strace", "-f", "-y", "-s", "0", "-o", path, "-e", "trace=" + names]
    if injection:
        tracer += ["-e", injection.expression]
    # The backtracer of a program that traps could hang under strace.
    ended = run(tracer + command, directory, {"SWIFT_BACKTRACE": "enable=no"})
    with open(path, errors="replace") as lines:
        calls, fired = _parse(lines)
    return ended, calls, fired


def _parse(lines):
    calls, fired = [], []
    main, counts, open_calls, former = None, {}, {}, {}
    for line in lines:
        thread, name, rest = None, None, None
        match = _LINE.match(line)
        if match:
            thread, name, rest = match.groups()
            main = main or thread
            counts[thread, name] = counts.get((thread, name), 0) + 1
            if rest.rstrip().endswith("<unfinished ...>"):
                open_calls[thread] = rest.replace("<unfinished ...>", "").rstrip()
                continue
        else:
            match = _RESUMED.match(line)
            if not match:
                continue
            thread, name, rest = match.groups()
            rest = open_calls.pop(thread, "") + rest
        result = _RESULT.search(rest)
        asked = _ASKED.search(rest)
        kind = _kind(name, rest)
        if kind == "MANIFEST" and thread != main and former.get(thread) == "index":
            # Beside everything else an image is taken into use, which nothing that is
            # acknowledged needs.
            kind = "image"
        elif kind:
            former[thread] = kind
        call = Call(
            name, counts[thread, name], kind,
            int(result[1]) if result and result[1] != "?" else None,
            result[2] if result else None,
            int(asked[1]) if asked else None)
        # A call without an end is that within which the process was killed.
        if "(INJECTED)" in rest or call.result is None:
            fired.append(call)
        if thread == main:
            calls.append(call)
    fired += [Call("", 0, _kind("", rest), None, None, None) for rest in open_calls.values()]
    return calls, fired


def _kind(name, rest):
    """The subject of a call; None when it is no business of the store."""
    match = _DESCRIPTOR.match(rest)
    if match:
        if rest.startswith(("1<", "2<")) and name == "write":
            return "output"
        path = match[1]
    else:
        match = _QUOTED.search(rest)
        if not match:
            return None
        path = match[1]
    parts = path.split("/")
    if STORE not in parts:
        return None
    below = parts[parts.index(STORE) + 1:]
    if below in ([], ["log"]):
        return "directory"
    return below[0].split(".")[0]
