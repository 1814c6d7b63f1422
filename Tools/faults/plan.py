"""Which errors are injected into which calls, and what must come of them."""

import errno
import os
import re
from collections import namedtuple

# The errors that a call can truthfully fail with. An injected error means that the kernel did
# nothing, which is what these errors say. Short writes are not here: a return value that is made up
# would claim bytes that nobody wrote. They come from disks and limits that are really full (see
# space.py).
ERRORS = {
    "pwrite64": ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
    "write": ["EIO", "ENOSPC", "EPIPE", "EINTR"],
    "fdatasync": ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
    "fsync": ["EIO", "ENOSPC", "EINTR"],
    "openat": ["EIO", "ENOSPC", "EMFILE", "ENFILE", "EACCES", "EROFS", "EINTR"],
    "fallocate": ["EIO", "ENOSPC", "EDQUOT", "EOPNOTSUPP", "EINTR"],
    "ftruncate": ["EIO", "ENOSPC", "EINTR"],
    "mkdir": ["EIO", "ENOSPC", "EDQUOT", "EACCES"],
    "unlink": ["EIO", "EACCES", "EROFS"],
    "unlinkat": ["EIO", "EACCES", "EROFS"],
    "rename": ["EIO", "ENOSPC"],
    "renameat": ["EIO", "ENOSPC"],
    "renameat2": ["EIO", "ENOSPC"],
    "pread64": ["EIO", "EINTR"],
    "getdents64": ["EIO"],
    "flock": ["EIO", "ENOLCK", "EINTR"],
}

# Besides: the process is killed as it makes the call; and a write says again and again that it
# wrote nothing, which is a lie, so only that the tool comes to an end is asked.
KILLED = "SIGKILL"
NOTHING = "zero"
EXTRA = {"pwrite64": [KILLED, NOTHING], "write": [KILLED], "fdatasync": [KILLED],
         "fsync": [KILLED], "openat": [KILLED], "fallocate": [KILLED], "ftruncate": [KILLED],
         "unlink": [KILLED], "mkdir": [KILLED]}

CALLS = list(ERRORS)
# For those who cannot wait for all.
COMMON = ["EIO", "ENOSPC", KILLED, "EINTR"]

# Without effect on the outcome: the call is made again, or done by other means.
ABSORBED = {"EINTR", "EOPNOTSUPP"}
# No signal goes on for ever, and a pipe without a reader is told once.
ONCE_ONLY = {"EINTR", "EPIPE", KILLED}


class Injection(namedtuple("Injection", "call what nth sticky")):
    """One fault: the nth call of a thread, and with `sticky` every later one too."""

    @property
    def expression(self):
        """The fault as strace is told it."""
        how = f"error={self.what}"
        if self.what == KILLED:
            how = f"signal={self.what}"
        elif self.what == NOTHING:
            how = "retval=0"
        return f"inject={self.call}:{how}:when={self.nth}{'+' if self.sticky else ''}"

    @property
    def words(self):
        """The system's words for the error; none for what is no error."""
        number = getattr(errno, self.what, None)
        return os.strerror(number) if number is not None else None

    def __str__(self):
        return f"{self.call}:{self.what}:{self.nth}{'+' if self.sticky else ''}"

    @staticmethod
    def parse(text):
        match = re.fullmatch(r"(\w+):(\w+):(\d+)(\+?)", text)
        if not match:
            raise ValueError(f"{text} is not CALL:WHAT:N or CALL:WHAT:N+")
        return Injection(match[1], match[2], int(match[3]), match[4] == "+")


def spread(items, most):
    """At most so many of them, evenly, the first and the last always."""
    if len(items) <= most:
        return list(items)
    if most == 1:
        return [items[0]]
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def injections(calls, most, names=None, whats=None):
    """All faults for the calls that an undisturbed run has made.

    - Parameters:
      - calls: those on the store, and on standard output and error.
      - most: so many occurrences of a call at most, spread evenly.
      - names: only these calls.
      - whats: only these faults.
    """
    plan = []
    for name in CALLS:
        if names and name not in names:
            continue
        nths = spread([call.nth for call in calls if call.name == name], most)
        for what in ERRORS[name] + EXTRA.get(name, []):
            if whats and what not in whats:
                continue
            for nth in nths:
                plan.append(Injection(name, what, nth, False))
                if what not in ONCE_ONLY:
                    plan.append(Injection(name, what, nth, True))
    return plan


def must_fail(injection, fired, merges=False):
    """Whether the tool may not claim that all is well after what has fired.

    A write or a sync of the log or of MANIFEST that failed leaves something undone for certain.
    Of the rest some is not needed: an index image, and MANIFEST naming it beside everything else,
    the name in LOCK, a file to be removed, as much space as was asked for first.
    """
    if injection.what in ABSORBED or injection.what == "EPIPE":
        return False
    needed = {"log", "MANIFEST", "directory"}
    if merges and injection.what in ("ENOSPC", "EDQUOT"):
        # Closing merges small segments when there is space for it, and says nothing when not.
        needed = {"MANIFEST"}
    return injection.call in ("pwrite64", "fdatasync", "fsync") and not needed.isdisjoint(fired)
