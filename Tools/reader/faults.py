"""How reading ends when it cannot go on; the numbers are those that logtool exits with."""


class Fault(Exception):
    """The findings, with the status that the program ends with."""

    status = 1


class HistoryGone(Fault):
    """The state that was asked for is no longer kept."""


class Usage(Fault):
    """The question makes no sense."""

    status = 64


class NoStore(Fault):
    """The directory is not there, or holds no store."""

    status = 66


class InputOutput(Fault):
    """The system, or a program that it runs, failed."""

    status = 74


class TooNew(Fault):
    """A later version of the format wrote this: it is not damage."""

    status = 76


class Damage(Fault):
    """A file does not hold what it must."""

    status = 65

    def __init__(self, path, offset, reason):
        super().__init__(f"{path}, offset {offset}: {reason}")
        self.path = path
        self.offset = offset
        self.reason = reason
