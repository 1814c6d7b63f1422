"""Numbers and runs of bytes, taken from a buffer whose every length is hostile."""

from .faults import Damage

MASK64 = (1 << 64) - 1


def signed(value):
    """The number that a zigzag varint stands for."""
    return (value >> 1) ^ -(value & 1)


class Fields:
    """Takes one field after the other; what reaches beyond the end is damage.

    `path` and `base` say where the bytes stand, for the message. What was compressed has the
    offset of its compressed form.
    """

    __slots__ = ("bytes", "at", "end", "path", "base")

    def __init__(self, data, path, base=0, at=0):
        self.bytes = data
        self.at = at
        self.end = len(data)
        self.path = path
        self.base = base

    def damage(self, reason):
        return Damage(self.path, self.base, f"{reason} (byte {self.at} of this part)")

    def take(self, count):
        """So many bytes."""
        end = self.at + count
        if end > self.end:
            raise self.damage(f"{count} bytes are missing")
        taken = self.bytes[self.at : end]
        self.at = end
        return taken

    def number(self, count):
        """An unsigned number of so many bytes."""
        return int.from_bytes(self.take(count), "little")

    def u8(self):
        at = self.at
        if at >= self.end:
            raise self.damage("a byte is missing")
        self.at = at + 1
        return self.bytes[at]

    def u32(self):
        return self.number(4)

    def u64(self):
        return self.number(8)

    def varint(self, below=1 << 64):
        """An unsigned LEB128 number in its shortest form."""
        at = self.at
        data = self.bytes
        if at < self.end and data[at] < 0x80 and data[at] < below:
            # By far the most are this short.
            self.at = at + 1
            return data[at]
        value = 0
        for shift in range(0, 70, 7):
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise self.damage("a varint is not in its shortest form")
                if value >= below or value > MASK64:
                    raise self.damage(f"{value} is too large")
                return value
        raise self.damage("a varint has more than ten bytes")

    def zigzag(self):
        return signed(self.varint())

    def flag(self):
        """A u8 that is 0 or 1."""
        value = self.u8()
        if value > 1:
            raise self.damage(f"{value} where 0 or 1 must stand")
        return value == 1

    def optional(self, below=1 << 64):
        """None after a 0, a varint after a 1."""
        return self.varint(below) if self.flag() else None

    def counted(self, most):
        """A varint length, at most so much, and the bytes."""
        return self.take(self.varint(most + 1))

    def ended(self, what):
        """Makes sure that nothing is left."""
        if self.at != self.end:
            raise self.damage(f"{self.end - self.at} bytes behind the end of the {what}")


def rest_is_zero(data, at):
    """Whether there are only zeros from `at` on."""
    return data.count(0, at) == len(data) - at
