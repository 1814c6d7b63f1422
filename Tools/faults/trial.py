"""One fault: injects it, and looks at everything that must be true afterwards."""

import os
from collections import namedtuple

from . import plan, tracer, workload as work
from .oracle import Violation

Outcome = namedtuple("Outcome", "status kept fired")
"""How the tool ended, how many lines were kept, and which calls failed."""


def run(workload, injection):
    """Lets a workload run with a fault.

    - Throws: `Violation`, with the store as it is then.
    """
    workload.reset()
    ended, _, fired = tracer.trace(
        workload.command, workload.directory, [injection.call], injection)
    kinds = [call.kind for call in fired]
    check_end(ended, injection, kinds)
    kept = check_store(workload, ended)
    if ended.status == 0 and kept != len(workload.oracle.lines):
        raise Violation(f"the tool says that all is well, and {kept} lines are there")
    if ended.status == 0 and plan.must_fail(injection, kinds, workload.merges):
        raise Violation(f"the tool says that all is well though {injection} failed")
    if ended.status != 0 and injection.what in plan.ABSORBED:
        raise Violation(f"{injection} should not have stopped the tool: {ended.talk.strip()}")
    finish(workload, kept)
    return Outcome(ended.status, kept, fired)


def check_end(ended, injection, kinds):
    """The tool has to end by itself, with a status that says why, and one line."""
    if ended.is_hung:
        raise Violation("the tool does not come to an end")
    if injection.what == plan.KILLED:
        if ended.status not in (-9, 137, 0):
            raise Violation(f"killed, the tool ends with {ended.status}")
        return
    if ended.status not in (0, 74, 77):
        raise Violation(f"the tool ends with {ended.status}: {ended.talk.strip()}")
    if ended.status == 77 and injection.what not in ("EACCES", "EROFS"):
        raise Violation(f"{injection.what} is no want of permission: {ended.talk.strip()}")
    # A file that could not be written cannot be read here.
    if injection.call == "write" and "output" in kinds:
        return
    check_talk(ended, injection.words)


def check_talk(ended, words):
    """Says one line about what has failed, or nothing when nothing has."""
    lines = ended.talk.splitlines()
    if ended.status == 0:
        if lines:
            raise Violation(f"the tool ends well and complains: {ended.talk.strip()}")
        return
    if len(lines) != 1 or not lines[0].startswith("logtool: "):
        raise Violation(f"an error is one line: {ended.talk.strip() or 'nothing is said'}")
    if words and words not in lines[0]:
        raise Violation(f"the error does not say why ({words}): {lines[0]}")


def check_store(workload, ended):
    """Looks at what is left, without writing.

    - Returns: how many lines the store holds.
    """
    acknowledged = workload.before + max(work.committed(ended.output), default=0)
    verified = workload.logtool("verify", "--quiet")
    exported = workload.logtool("export", "--history", "--quiet")
    if verified.status == 66 and exported.status == 66 and acknowledged == 0:
        return 0
    for name, ended in (("verify", verified), ("export", exported)):
        if ended.status != 0 or ended.is_hung:
            raise Violation(
                f"afterwards {name} ends with {ended.status}: "
                f"{(ended.output.decode(errors='replace')[-400:] + ended.talk).strip()}")
    kept = exported.output.count(b"\n")
    if kept < acknowledged:
        raise Violation(f"{acknowledged} lines were acknowledged and {kept} are there")
    if kept not in workload.ends:
        raise Violation(f"{kept} lines are there, which is not the end of a batch")
    workload.oracle.check_history(exported.output, kept)
    workload.oracle.check_state(workload.must("export", "--quiet"), kept)
    return kept


def finish(workload, kept):
    """Without the fault the rest has to go in, and nothing may be wrong then."""
    total = len(workload.oracle.lines)
    if workload.arguments[0] == "compact":
        workload.must("compact", "--quiet")
    else:
        workload.write("rest.ndjson", workload.oracle.lines[kept:])
        workload.must("import", "rest.ndjson", "--quiet")
    workload.must("verify", "--quiet")
    workload.oracle.check_history(workload.must("export", "--history", "--quiet"), total)
    workload.oracle.check_state(workload.must("export", "--quiet"), total)
    left = set(os.listdir(workload.path(workload.store))) - {
        "LOCK", "MANIFEST.0", "MANIFEST.1", "BALLAST", "log", "index", "quarantine"}
    if left:
        raise Violation(f"left behind: {', '.join(sorted(left))}")
