"""Heads of entries, and their attributes."""

from .faults import TooNew
from .fields import MASK64, Fields

PUT, DELETE, TOUCH, RECORD, EVICT = 1, 2, 3, 4, 5
_MOST_VALUE = 64 << 20


class Entry:
    """One entry of the log, without its value: that follows from `frame` and `value_at`."""

    __slots__ = (
        "sequence", "kind", "ends_batch", "key", "labels", "value_length", "previous",
        "commit_time", "value_sequence", "created", "attributes", "frame", "slot", "value_at",
    )

    @property
    def is_there(self):
        """Whether the key is there when this is its newest entry."""
        return self.kind in (PUT, TOUCH)

    @property
    def is_cached(self):
        """Whether the entry says that it is of cached data."""
        return attributes(self.attributes, "", 0).is_cache


class Attributes:
    """The attributes of an entry besides key, value and labels; here, what is printed of it."""

    __slots__ = ("time", "hash", "max_age", "is_cache", "origin", "attachment")

    def __init__(self):
        self.time = None
        self.hash = b""
        self.max_age = None
        self.is_cache = False
        self.origin = None
        self.attachment = None


def decode(fields, header):
    """All heads of a frame.

    - Parameters: `fields`, the decoded heads; `header`, the frame's.
    """
    sets = [_labels(fields) for _ in range(fields.varint())]
    base = fields.u64()
    sequence, commit_time = header.first, base
    entries = []
    for index in range(header.entries):
        entry = Entry()
        code = fields.u8()
        present = fields.u8()
        entry.kind = code & 15
        entry.ends_batch = code & 16 != 0
        if code > 31 or not 1 <= entry.kind <= 5 or present > 127:
            raise TooNew(
                f"{fields.path}, offset {fields.base}: kind or fields {code:#x}, {present:#x}"
                " are not known to this reader")
        if header.has_sequences:
            sequence += fields.zigzag()
            commit_time = base
        elif index:
            sequence += 1
        entry.sequence = sequence
        _fill(entry, present, fields, sets, commit_time)
        commit_time = entry.commit_time
        entries.append(entry)
    fields.ended("heads")
    return entries


def _labels(fields):
    count = fields.varint()
    if not 1 <= count <= 64:
        raise fields.damage(f"a set of {count} labels")
    labels = [fields.counted(255) for _ in range(count)]
    if b"" in labels or any(a >= b for a, b in zip(labels, labels[1:])):
        raise fields.damage("labels are empty or not in order")
    return labels


def _fill(entry, present, fields, sets, base):
    """The fields behind the sequence."""
    entry.key = fields.counted(65535)
    if not entry.key and entry.kind != RECORD:
        raise fields.damage("an entry without a key")
    entry.labels = []
    if present & 1:
        index = fields.varint()
        if index >= len(sets):
            raise fields.damage(f"there is no set of labels {index}")
        entry.labels = sets[index]
    entry.value_length = fields.varint(_MOST_VALUE + 1) if present & 2 else 0
    entry.previous = _earlier(entry, fields) if present & 4 else None
    delta = fields.zigzag() if present & 8 else 0
    entry.commit_time = base + delta & MASK64
    entry.value_sequence = _earlier(entry, fields) if present & 16 else None
    entry.created = fields.u64() if present & 32 else None
    entry.attributes = fields.counted(6144) if present & 64 else b""
    _check_kind(entry, present, fields)


def _earlier(entry, fields):
    """A sequence below the entry's, stored as the distance."""
    distance = fields.varint()
    if not 0 < distance < entry.sequence:
        raise fields.damage(f"entry {entry.sequence} refers {distance} back")
    return entry.sequence - distance


def _check_kind(entry, present, fields):
    """Which fields each kind must carry and must not."""
    must, must_not = {
        PUT: (2, 16), DELETE: (0, 2 | 16), TOUCH: (16, 1 | 2), RECORD: (0, 16), EVICT: (0, 2 | 16),
    }[entry.kind]
    if present & must != must or present & must_not:
        raise fields.damage(
            f"entry {entry.sequence} of kind {entry.kind} has the fields {present:#x}")


def attributes(data, path, offset):
    """Decodes an entry's attributes.

    - Parameters: `path` and `offset` say where, for a message.
    """
    decoded = Attributes()
    if not data:
        return decoded
    fields = Fields(data, path, offset)
    bits = fields.varint()
    if bits >> 17:
        raise TooNew(f"{path}, offset {offset}: attributes {bits:#x} are not known to this reader")
    if bits & 48 == 48:
        raise fields.damage("two bases")
    for bit in range(17):
        if bits >> bit & 1:
            _attribute(bit, fields, decoded)
    fields.ended("attributes")
    return decoded


def _attribute(bit, fields, decoded):
    if bit == 0:
        decoded.time = (fields.zigzag(), fields.varint(10**9))
    elif bit == 1:
        code = fields.varint()
        if code >> 1 > 64:
            raise fields.damage("a hash of more than 64 bytes")
        decoded.hash = fields.take(code >> 1)
        if code & 1:
            decoded.hash = decoded.hash.hex().encode()
    elif bit == 2:
        decoded.max_age = fields.varint(1 << 32)
    elif bit == 3:
        if fields.u8() != 1:
            raise TooNew(f"{fields.path}, offset {fields.base}: the class is not known")
        decoded.is_cache = True
    elif bit == 6:
        decoded.origin = (fields.take(16), fields.varint())
    elif bit == 9:
        decoded.attachment = (fields.take(32), fields.varint())
    else:
        _pass_over(bit, fields)


def _pass_over(bit, fields):
    """Attributes that are not printed; what they hold is still looked at."""
    if bit == 4:
        fields.u64(), fields.varint()
    elif bit == 5:
        fields.take(16), fields.varint()
    elif bit == 8:
        for _ in range(fields.varint(16 + 1)):
            fields.varint()
    elif bit == 10:
        fields.counted(1024)
    elif bit == 12:
        fields.counted(64)
    elif bit in (11, 14):
        fields.varint(1 << 32)
    elif bit == 16:
        for _ in range(fields.varint(32 + 1)):
            fields.counted(1024)
            fields.varint()
        fields.varint()
    else:
        # 7, a priority, is a zigzag; 13, an atomic group, and 15, a commit time, are varints.
        fields.varint()
