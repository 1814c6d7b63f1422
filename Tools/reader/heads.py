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


# The columns, in the order of their bits.
(
    _KINDS, _ENDS, _SEQUENCES, _SETS, _VALUES, _PREVIOUS, _TIMES, _VALUE_SEQUENCES, _CREATED,
    _ATTRIBUTES,
) = range(10)
_OF_ALL = (_KINDS, _ENDS, _SEQUENCES, _TIMES)


def decode(fields, header, decoded):
    """All heads of a frame that has entries.

    - Parameters: `fields`, the heads as stored; `header`, the frame's; `decoded` gives the raw bytes
      for stored bytes, the raw length and the codec.
    """
    present = fields.number(2)
    if present >> 10:
        raise TooNew(
            f"{fields.path}, offset {fields.base}: columns {present:#x} are not known to this reader")
    if not present >> _TIMES & 1 or bool(present >> _SEQUENCES & 1) != header.has_sequences:
        raise fields.damage("the columns of heads do not fit their frame")
    count = 1 + (present >> _SETS & 1) + (present >> _ATTRIBUTES & 1)
    rows = [_row(fields, header) for _ in range(count)]
    columns = [
        _column(fields, header.entries, bit not in _OF_ALL)
        if present >> bit & 1
        else [None] * header.entries
        for bit in range(10)
    ]
    texts = [decoded(fields.take(stored), raw, codec) for stored, raw, codec in rows]
    fields.ended("heads")
    keys = _keys(Fields(texts[0], fields.path, fields.base), header)
    sets = []
    if present >> _SETS & 1:
        text = Fields(texts[1], fields.path, fields.base)
        sets = [_labels(text) for _ in range(text.varint(header.entries + 1))]
        text.ended("sets of labels")
    text = Fields(texts[-1] if present >> _ATTRIBUTES & 1 else b"", fields.path, fields.base)
    entries = []
    for index in range(header.entries):
        entry = Entry()
        entry.key = keys[index]
        entry.sequence = header.first + index
        _fill(entry, [column[index] for column in columns], sets, fields)
        length = columns[_ATTRIBUTES][index]
        if length is not None and not 1 <= length <= 6144:
            raise fields.damage(f"attributes of {length} bytes")
        entry.attributes = text.take(length or 0)
        entries.append(entry)
    text.ended("attributes")
    if sum(len(entry.key) + len(entry.attributes) for entry in entries) != header.heads_raw:
        raise fields.damage("the heads have another length than their frame says")
    return entries


def _row(fields, header):
    """Stored length, raw length and codec of a text."""
    word = fields.varint()
    stored, codec = word >> 2, word & 3
    if codec > 2:
        raise TooNew(f"{fields.path}, offset {fields.base}: the codec is not known")
    raw = stored if codec == 0 else fields.varint()
    if max(stored, raw) > 2 << 20:
        raise fields.damage("a text of heads is too long")
    if codec == 2:
        header.uses_dictionary = True
    return stored, raw, codec


def _column(fields, count, may_lack):
    """The numbers of a column, None where a row has none."""
    form = fields.u8()
    width = form & 127
    if width > 56 and width != 64:
        raise fields.damage(f"a column of {width} bits")
    if form & 128 and not may_lack:
        raise fields.damage("a number is missing that every row has")
    least = fields.varint()
    has = [1] * count
    if form & 128:
        bitmap = int.from_bytes(fields.take(count + 7 >> 3), "little")
        if bitmap >> count:
            raise fields.damage("a bitmap of more rows than there are")
        has = [bitmap >> index & 1 for index in range(count)]
    packed = fields.take(sum(has) * width + 7 >> 3)
    numbers, at = [], 0
    for is_there in has:
        if is_there:
            word = int.from_bytes(packed[at >> 3 : (at >> 3) + 9], "little") >> (at & 7)
            numbers.append(least + (word & (1 << width) - 1) & MASK64)
            at += width
        else:
            numbers.append(None)
    return numbers


def _keys(fields, header):
    keys, key, total = [], b"", 0
    for index in range(header.entries):
        shared = fields.varint(len(key) + 1) if index else 0
        key = key[:shared] + fields.counted(65535 - shared)
        keys.append(key)
        total += len(key)
        if total > header.heads_raw:
            raise fields.damage("the keys are longer than their frame says")
    fields.ended("keys")
    return keys


def _labels(fields):
    count = fields.varint()
    if not 1 <= count <= 64:
        raise fields.damage(f"a set of {count} labels")
    labels = [fields.counted(255) for _ in range(count)]
    if b"" in labels or any(a >= b for a, b in zip(labels, labels[1:])):
        raise fields.damage("labels are empty or not in order")
    return labels


def _fill(entry, numbers, sets, fields):
    """The fields that columns give."""
    entry.kind = PUT if numbers[_KINDS] is None else numbers[_KINDS]
    if not 1 <= entry.kind <= 5:
        raise TooNew(f"{fields.path}, offset {fields.base}: kind {entry.kind} is not known")
    entry.ends_batch = numbers[_ENDS] != 0
    if numbers[_ENDS] not in (None, 0, 1):
        raise fields.damage(f"{numbers[_ENDS]} for the end of a batch")
    if numbers[_SEQUENCES] is not None:
        entry.sequence = numbers[_SEQUENCES]
    if not 0 < entry.sequence < 1 << 48:
        raise fields.damage(f"sequence {entry.sequence}")
    if not entry.key and entry.kind != RECORD:
        raise fields.damage("an entry without a key")
    entry.labels = []
    if numbers[_SETS] is not None:
        if numbers[_SETS] >= len(sets):
            raise fields.damage(f"there is no set of labels {numbers[_SETS]}")
        entry.labels = sets[numbers[_SETS]]
    entry.value_length = numbers[_VALUES] or 0
    if entry.value_length > _MOST_VALUE + (64 << 10):
        raise fields.damage(f"a value of {entry.value_length} bytes")
    entry.commit_time = numbers[_TIMES]
    entry.previous = _earlier(entry, numbers[_PREVIOUS], fields)
    entry.value_sequence = _earlier(entry, numbers[_VALUE_SEQUENCES], fields)
    age = numbers[_CREATED]
    entry.created = None
    if age is not None:
        age = age >> 1 if age & 1 == 0 else -(age + 1 >> 1)
        entry.created = entry.commit_time - age & MASK64
    _check_kind(entry, numbers, fields)


def _earlier(entry, distance, fields):
    """A sequence below the entry's, stored as the distance; None for none."""
    if distance is None:
        return None
    if not 0 < distance < entry.sequence:
        raise fields.damage(f"entry {entry.sequence} refers {distance} back")
    return entry.sequence - distance


def _check_kind(entry, numbers, fields):
    """Which fields each kind must carry and must not."""
    must, must_not = {
        PUT: (_VALUES, (_VALUE_SEQUENCES,)), DELETE: (None, (_VALUES, _VALUE_SEQUENCES)),
        TOUCH: (_VALUE_SEQUENCES, (_SETS, _VALUES)), RECORD: (None, (_VALUE_SEQUENCES,)),
        EVICT: (None, (_VALUES, _VALUE_SEQUENCES)),
    }[entry.kind]
    lacks = must is not None and numbers[must] is None
    if lacks or any(numbers[column] is not None for column in must_not):
        raise fields.damage(
            f"entry {entry.sequence} of kind {entry.kind} lacks a field or has one too many")


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
