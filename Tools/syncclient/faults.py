"""How the client ends when it cannot go on; the numbers are those that logtool exits with."""


class Fault(Exception):
    """The reason, in one line, with the status that the program ends with."""

    status = 1


class StartAnew(Fault):
    """Client and server have nothing in common to go on from; `restart` brings them together."""

    status = 3


class Usage(Fault):
    """The question makes no sense."""

    status = 64


class DamagedState(Fault):
    """The state file does not hold what it must."""

    status = 65


class NoState(Fault):
    """There is no state file."""

    status = 66


class Unavailable(Fault):
    """No answer, or none that counts: what became of the call is unknown."""

    status = 69

    def __init__(self, message, retry_after=None):
        super().__init__(message)
        self.retry_after = retry_after


class InUse(Fault):
    """Another process works with the state file."""

    status = 75


class BadAnswer(Fault):
    """The server said what the protocol does not know."""

    status = 76


class NoPermission(Fault):
    """The server does not let this client in, or not so far."""

    status = 77


def one_line(text, most=300):
    """Somebody else's words as they can be shown: in one line, without control characters."""
    shown = "".join(c if c.isprintable() else " " for c in text[:most])
    return shown if len(text) <= most else shown + "…"
