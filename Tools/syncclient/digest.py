"""Sums over keys, and how two sides find what they do not have in common."""

from bisect import bisect_left

from .attachment import encoded
from .faults import BadAnswer, Fault
from .wire import KEY_BYTES_MAX, ROWS_MAX, to_bytes, varint

_MASK = (1 << 64) - 1
_P1 = 0x9E3779B185EBCA87
_P2 = 0xC2B2AE3D27D4EB4F
_P3 = 0x165667B19E3779F9
_P4 = 0x85EBCA77C2B2AE63
_P5 = 0x27D4EB2F165667C5

_LOW_SEED = 0x544944454D41524B
_HIGH_SEED = 0x4449474553543132
_KEY_SEED = 0x4B45594841534831

_PATH_BYTES_MAX = 8
_PATHS_MAX = 1_024
_COMPARISONS_MAX = 100_000


def _rotated(value, count):
    return (value << count | value >> 64 - count) & _MASK


def _round(lane, word):
    return _rotated(lane + word * _P2 & _MASK, 31) * _P1 & _MASK


def xxh64(data, seed):
    """The 64-bit xxHash of bytes."""
    words = memoryview(data)[: len(data) & ~7].cast("B")
    at = 0
    if len(data) >= 32:
        lanes = [seed + _P1 + _P2 & _MASK, seed + _P2 & _MASK, seed, seed - _P1 & _MASK]
        for at in range(0, len(data) & ~31, 32):
            for lane in range(4):
                place = at + 8 * lane
                word = int.from_bytes(words[place : place + 8], "little")
                lanes[lane] = _round(lanes[lane], word)
        at += 32
        turned = (_rotated(lane, count) for lane, count in zip(lanes, (1, 7, 12, 18)))
        state = sum(turned) & _MASK
        for lane in lanes:
            state = (state ^ _round(0, lane)) * _P1 + _P4 & _MASK
    else:
        state = seed + _P5 & _MASK
    state = state + len(data) & _MASK
    for at in range(at, len(words), 8):
        word = int.from_bytes(words[at : at + 8], "little")
        state = _rotated(state ^ _round(0, word), 27) * _P1 + _P4 & _MASK
    at = len(words)
    if len(data) - at >= 4:
        word = int.from_bytes(data[at : at + 4], "little")
        state = _rotated(state ^ word * _P1 & _MASK, 23) * _P2 + _P3 & _MASK
        at += 4
    for byte in data[at:]:
        state = _rotated(state ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    state = (state ^ state >> 33) * _P2 & _MASK
    state = (state ^ state >> 29) * _P3 & _MASK
    return state ^ state >> 32


def _counted(data):
    """A varint length and the bytes."""
    return varint(len(data)) + data


def key_hash(key):
    """The eight bytes, highest first, that say in which parts of a digest a key lies."""
    return xxh64(to_bytes(key), _KEY_SEED).to_bytes(8, "big")


def fingerprint(key, value, labels, attachment=None):
    """128 bits that stand for a key and what it holds."""
    head = _counted(to_bytes(key)) + bytes([len(labels)])
    head += b"".join(_counted(to_bytes(label)) for label in labels)
    head += b"\2" + encoded(attachment) if attachment else b"\0"
    content = to_bytes(value)
    low = xxh64(content, xxh64(head, _LOW_SEED))
    high = xxh64(content, xxh64(head, _HIGH_SEED))
    return high << 64 | low


class Table:
    """The fingerprints of all keys of one side, in the order of their hashes."""

    def __init__(self, contents):
        """- Parameter contents: (key, value, labels, attachment or None) of every key."""
        self._rows = sorted(
            (key_hash(key), key, fingerprint(key, *held)) for key, *held in contents)

    def part(self, path):
        """The fingerprints by key of a part: of the keys whose hashes begin with these bytes."""
        start = bisect_left(self._rows, (path,))
        end = bisect_left(self._rows, (path + b"\xff" * (9 - len(path)),))
        return {key: print_ for _, key, print_ in self._rows[start:end]}

    def total(self, path):
        """How many keys a part has, and the sum of their fingerprints."""
        prints = self.part(path).values()
        return len(prints), sum(prints) % (1 << 128)


class Differences:
    """The result of a comparison, and how many parts it looked at."""

    def __init__(self):
        self.comparisons = 0
        self.only_here, self.only_there, self.different = [], [], []

    def __bool__(self):
        return bool(self.only_here or self.only_there or self.different)


class Moved(Fault):
    """The server was written to between two answers."""


def compare(table, ask):
    """Walks from the whole down into the parts that differ.

    - Parameter ask: the server's answer about the parts with some paths, or the first of them.
    - Raises: Moved when the answers do not belong together.
    """
    found = Differences()
    paths, position = [b""], None
    while paths:
        asked = paths[:_PATHS_MAX]
        answer = ask(asked)
        if position not in (None, answer.position("position")):
            raise Moved("the server is written to all the time; compare when it is quiet")
        position = answer.position("position")
        parts = answer.objects("parts", len(asked))
        if not parts:
            raise BadAnswer("a digest has no parts")
        deeper = []
        for path, part in zip(asked, parts):
            found.comparisons += 1
            if found.comparisons > _COMPARISONS_MAX:
                raise BadAnswer("the server's digest has no end")
            deeper += _compare_part(table, path, part, found)
        paths = deeper + paths[len(parts) :]
    return found


def _compare_part(table, path, part, found):
    """- Returns: the parts of the part that have to be looked into."""
    if _sum(part.object("total")) == table.total(path):
        return []
    if part.has("keys"):
        _compare_keys(table.part(path), path, part, found)
        return []
    sums = part.objects("sums", 256)
    if len(sums) != 256 or len(path) >= _PATH_BYTES_MAX:
        raise BadAnswer("a part of a digest has no 256 parts")
    children = [path + bytes([index]) for index in range(256)]
    return [child for child, there in zip(children, sums) if _sum(there) != table.total(child)]


def _sum(fields):
    keys = fields.number("keys")
    return keys, int(fields.hexadecimal("sum", 32, absent=None if keys else "0" * 32), 16)


def _compare_keys(here, path, part, found):
    for row in part.objects("keys", ROWS_MAX):
        key = row.bytes("key", KEY_BYTES_MAX)
        if not key_hash(key).startswith(path):
            raise BadAnswer("a key of a digest is not of the part that was asked for")
        there = int(row.hexadecimal("sum", 32), 16)
        if key not in here:
            found.only_there.append(key)
        elif here.pop(key) != there:
            found.different.append(key)
    found.only_here += here
