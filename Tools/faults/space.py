"""Disks that are really full, and limits of files: the truthful way to a short write.

The store stands on a small file system in memory (tmpfs), which an import fills up. What had been
acknowledged is there, also while the disk is full; with more space the rest goes in. Or the
process may not make files longer than so much (RLIMIT_FSIZE), where a write across the limit is
short and the next one fails.
"""

import os

from . import plan, tracer, trial, workload as work
from .oracle import Violation
from .tracer import STORE

# Where space is not allocated ahead, as file systems that cannot do it have it, more writes meet
# the end of the disk: then the kernel's answer to fallocate is that.
PLAIN, UNALLOCATED = "plain", "fallocate:EOPNOTSUPP:1+"


def run(campaign, name):
    """Runs one of the two kinds over a spread of sizes."""
    if name == "fill":
        _fill(campaign)
    else:
        _limit(campaign)


def _sizes(campaign, most, low, high, step):
    """A spread of sizes in bytes, in whole pages."""
    sizes = plan.spread(range(low, high, step), campaign.options.most or most)
    if campaign.options.quick:
        sizes = sizes[len(sizes) // 3:][:1]
    return [size & -4096 for size in sizes]


def _fill(campaign):
    directory = os.path.join(campaign.directory, "fill")
    os.makedirs(directory)
    disk = Disk(os.path.join(directory, "disk"))
    if reason := disk.problem():
        campaign.not_run.append(f"fill: no file system can be mounted here ({reason})")
        return
    for base in ("new",) if campaign.options.quick else ("new", "more", "killed", "keys"):
        load = work.make(
            base, campaign.tool, os.path.join(directory, base), campaign.options.quick)
        load.rehearse()
        need = _bytes_of(load.path(STORE))
        low = _bytes_of(load.path(load.template)) if load.template else 0
        # From nothing to a little more than is needed: space is taken ahead.
        sizes = _sizes(campaign, 60, low + 4096, low + 2 * need, 4096)
        print(f"fill: {work.ABOUT[base]}, on {len(sizes)} disks twice", flush=True)
        for size in sizes:
            for how in (PLAIN, UNALLOCATED):
                if campaign.is_late:
                    campaign.not_run.append("fill: some disks, for want of time")
                    return
                _trial(campaign, load, "full disk", size, how, disk)


def _limit(campaign):
    for base in ("new",) if campaign.options.quick else ("new", "keys"):
        load = work.make(
            base, campaign.tool, os.path.join(campaign.directory, "limit", base),
            campaign.options.quick)
        load.rehearse()
        longest = max(
            os.path.getsize(os.path.join(folder, name))
            for folder, _, names in os.walk(load.path(STORE)) for name in names)
        sizes = _sizes(campaign, 60, 4096, 2 * longest, 4096)
        # Also within a page.
        sizes = [size + 512 * (number % 8) for number, size in enumerate(sizes)]
        print(f"limit: {work.ABOUT[base]}, with {len(sizes)} limits of length", flush=True)
        for size in sizes:
            for how in (PLAIN, UNALLOCATED):
                if campaign.is_late:
                    campaign.not_run.append("limit: some limits, for want of time")
                    return
                _trial(campaign, load, "long file", size, how, None)


def _trial(campaign, load, what, size, how, disk):
    """One size: fills it, looks, makes space, and brings in the rest."""
    key = (what, "tmpfs" if disk else "EFBIG")
    campaign.tried[key] += 1
    try:
        status, short, refused = _attempt(load, size, how, disk)
    except Violation as violation:
        campaign.fail(load.name, None, Violation(f"{what} of {size} bytes, {how}: {violation}"))
        return
    finally:
        if disk:
            load.store = STORE
            disk.unmount()
    campaign.count(key[0], key[1], status, refused)
    campaign.short_writes += short


def _attempt(load, size, how, disk):
    command = load.command
    if disk:
        disk.mount(size)
        load.store = os.path.join(disk.path, STORE)
        command = load.command
    else:
        # Set within the tracer, whose own file would be limited too, in units of 512 bytes. The
        # signal that goes with it would only end the process.
        script = 'trap "" XFSZ; ulimit -f "$0"; exec "$@"'
        command = ["sh", "-c", script, str(size // 512)] + load.command
    load.reset()
    injection = None if how == PLAIN else plan.Injection.parse(how)
    names = ["pwrite64", "fallocate", "openat", "mkdir", "write"]
    ended, calls, _ = tracer.trace(command, load.directory, names, injection)
    short = sum(
        call.name == "pwrite64" and call.asked is not None and call.result is not None
        and 0 < call.result < call.asked and call.kind is not None for call in calls)
    refused = sum(
        call.result is not None and call.result < 0 and call.kind is not None
        and call.error in ("ENOSPC", "EFBIG") for call in calls)
    if ended.is_hung:
        raise Violation("the tool does not come to an end")
    if ended.status not in (0, 74):
        raise Violation(f"the tool ends with {ended.status}: {ended.talk.strip()}")
    trial.check_talk(ended, "No space left on device" if disk else "File too large")
    kept = trial.check_store(load, ended)
    if ended.status == 0 and kept != len(load.oracle.lines):
        raise Violation(f"the tool says that all is well, and {kept} lines are there")
    if disk:
        if ended.status != 0:
            _check_full(load, kept)
        disk.grow()
    trial.finish(load, kept)
    return ended.status, short, refused


def _check_full(load, kept):
    """A second try while the disk is still full loses nothing by it."""
    load.write("rest.ndjson", load.oracle.lines[kept:])
    again = load.logtool("import", "rest.ndjson", "--quiet", "--output", "jsonl")
    trial.check_talk(again, "No space left on device")
    if again.status not in (0, 74):
        raise Violation(f"on the full disk a second import ends with {again.status}")
    before, load.before = load.before, kept
    try:
        more = trial.check_store(load, again)
    finally:
        load.before = before
    # It may have brought more in, now that the first has given back what it had taken ahead.
    load.write("rest.ndjson", load.oracle.lines[more:])


def _bytes_of(path):
    """The space that a directory takes, in whole pages."""
    total = 0
    for folder, _, names in os.walk(path):
        total += 4096 + sum(
            (os.path.getsize(os.path.join(folder, name)) + 4095) & -4096 for name in names)
    return total


class Disk:
    """A small file system in memory, which only root can mount."""

    def __init__(self, path):
        self.path = path
        self.is_mounted = False

    def problem(self):
        """Why none can be mounted; None when one can."""
        if os.geteuid() != 0:
            return "that takes root"
        os.makedirs(self.path, exist_ok=True)
        try:
            self.mount(1 << 20)
        except Violation as violation:
            return str(violation)
        self.unmount()
        return None

    def grow(self):
        self._call("mount", "-o", "remount,size=64m", self.path)

    def mount(self, size):
        self._call("mount", "-t", "tmpfs", "-o", f"size={size}", "realfaults", self.path)
        self.is_mounted = True

    def unmount(self):
        if self.is_mounted:
            self._call("umount", self.path)
            self.is_mounted = False

    @staticmethod
    def _call(*command):
        ended = tracer.run(list(command))
        if ended.status != 0:
            raise Violation(f"{' '.join(command)}: {ended.talk.strip()}")
