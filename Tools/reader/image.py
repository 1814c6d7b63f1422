"""A run of the index: its parts, decoded as the document describes them."""

import os
import struct

from .checksums import key_hash, xxh64
from .faults import Damage, InputOutput, TooNew
from .fields import MASK64, Fields

PAGE = 4096
CHUNK = 16384
SECTIONS = 13
_MAGIC = b"TIDEIDX1"
_GOLDEN = 0x9E3779B97F4A7C15
_BUCKET = 64
_LABEL = 40


def _packed(fields, count, width):
    """Numbers of `width` bits, the lowest bit first."""
    bits = int.from_bytes(fields.take(count * width + 7 >> 3), "little")
    return [bits >> width * index & (1 << width) - 1 for index in range(count)]


def is_derived(key):
    """Whether a key's entries are derived from those of others: no export has them."""
    return key.startswith(b"\0tidemark/#")


class ImageKey:
    """A key of an image."""

    __slots__ = ("key", "sequence", "label_set", "size_class")

    @property
    def is_live(self):
        """Whether the key is there."""
        return bool(self.size_class & (31 if self.size_class & 64 else 63))

    @property
    def is_counted(self):
        """Whether the key is there, and not one that is derived from other entries."""
        return self.is_live and not is_derived(self.key)


class Image:
    """An image in memory, its checksums compared.

    `faults` are those of single chunks; what else is wrong is raised.
    """

    def __init__(self, directory, row, store, hash_seed, beneath):
        self.path = row.path
        self.faults = []
        try:
            with open(os.path.join(directory, row.path), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            raise Damage(self.path, 0, "the file is missing") from None
        except OSError as error:
            raise InputOutput(f"{self.path}: {error.strerror}") from None
        if len(data) != row.length:
            raise Damage(self.path, 0, f"the file has {len(data)} bytes, not {row.length}")
        self._header(data[:PAGE], row, store, hash_seed, beneath)
        self.data = self._chunks(data)
        self._numbers_of_labels()

    def _header(self, page, row, store, hash_seed, beneath):
        if len(page) < PAGE or page[:8] != _MAGIC:
            raise Damage(self.path, 0, "no index image begins here")
        if xxh64(page[:4088]) != int.from_bytes(page[4088:], "little"):
            raise Damage(self.path, 4088, "the checksum of the header is wrong")
        major = int.from_bytes(page[8:10], "little")
        if major != 5:
            raise TooNew(f"{self.path}: its major version is {major}, not 5")
        fields = Fields(page, self.path, 0, at=12)
        sections = fields.u32()
        fields.take(16)
        if fields.u64():
            raise TooNew(f"{self.path}: it uses features that are not known to this reader")
        identity = (fields.take(16), fields.u64(), fields.u64(), fields.u64())
        if identity != (store, row.id, row.sequence, hash_seed):
            raise Damage(self.path, 40, "the image is another one than MANIFEST says")
        self.id, self.sequence, self.seed = identity[1:]
        self.keys, self.live, self.deleted = fields.u64(), fields.u64(), fields.u64()
        self.bytes, self.longest_probe = fields.u64(), fields.u64()
        self.total_live = fields.u64()
        if sections != SECTIONS or self.live + self.deleted > self.keys:
            raise Damage(self.path, 80, "the counts do not agree")
        self.sections = [(fields.u64(), fields.u64(), fields.u64()) for _ in range(SECTIONS)]
        self.base, self.next_label, self.next_set = fields.u64(), fields.u64(), fields.u64()
        if self.base != beneath:
            raise Damage(self.path, 440, f"it begins behind {self.base}, not behind {beneath}")
        for number, (offset, count, _) in enumerate(self.sections):
            if offset % (64 if number == 3 else 8) or offset + count > self.bytes:
                raise Damage(self.path, 128 + 24 * number, f"section {number} is out of bounds")

    def _chunks(self, file):
        chunks = []
        at, number = PAGE, 0
        for start in range(0, self.bytes, CHUNK):
            count = min(CHUNK, self.bytes - start)
            if at + count + 8 > len(file):
                raise Damage(self.path, at, "the file ends before its data")
            chunk = file[at : at + count]
            wanted = int.from_bytes(file[at + count : at + count + 8], "little")
            if xxh64(chunk, self.id + number * _GOLDEN & MASK64) != wanted:
                self.faults.append(Damage(self.path, at, "the checksum of a chunk is wrong"))
            chunks.append(chunk)
            at, number = at + count + 8, number + 1
        if at != len(file):
            raise Damage(self.path, at, "there are bytes behind the last checksum")
        return b"".join(chunks)

    def _numbers_of_labels(self):
        self.labels = self.strings(6, 7)
        self.sets = {
            number: struct.unpack(f"<{len(text) // 4}I", text[: len(text) // 4 * 4])
            for number, text in self.strings(9, 10).items()
        }
        self.sets[0] = ()
        data = self.section(5)
        #: Per label id the live keys that carry it, in this run and all beneath.
        self.counts = {}
        #: The place of a label in the section.
        self.places = {}
        for place in range(self.sections[5][2]):
            entry = data[_LABEL * place : _LABEL * place + 8]
            if len(entry) < 8:
                raise self.damage(5, "labels are missing")
            number, count = struct.unpack("<II", entry)
            if self.places and number <= max(self.places):
                raise self.damage(5, "the labels are not in order")
            self.counts[number], self.places[number] = count, place

    def damage(self, number, reason):
        """Damage in a section."""
        data = self.sections[number][0]
        return Damage(self.path, PAGE + data // CHUNK * (CHUNK + 8) + data % CHUNK, reason)

    def section(self, number):
        offset, count, _ = self.sections[number]
        return self.data[offset : offset + count]

    def offsets(self, number, width, count, limit):
        """Ascending offsets of the given width, one more than `count`, up to `limit`."""
        data = self.section(number)
        if len(data) < width * (count + 1):
            raise self.damage(number, "offsets are missing")
        found = [
            int.from_bytes(data[at : at + width], "little")
            for at in range(0, width * (count + 1), width)
        ]
        if any(a > b for a, b in zip(found, found[1:])) or found[-1] > limit:
            raise self.damage(number, "the offsets are not in order or out of bounds")
        return found

    def strings(self, offsets, content):
        """The strings of a section, by id, in their order."""
        data, table = self.section(content), self.section(offsets)
        count = self.sections[content][2]
        if len(table) != 9 * (count + 1):
            raise self.damage(offsets, "offsets are missing")
        rows = [
            (int.from_bytes(table[at : at + 4], "little"),
             int.from_bytes(table[at + 4 : at + 9], "little"))
            for at in range(0, len(table), 9)
        ]
        for (first, start), (second, end) in zip(rows, rows[1:]):
            if first >= second or not start < end <= len(data):
                raise self.damage(offsets, "the strings are not in order or out of bounds")
        return {row[0]: data[row[1] : other[1]] for row, other in zip(rows, rows[1:])}

    def read_keys(self):
        """All keys in order, by ordinal."""
        data = self.section(0)
        count = -(-self.keys // 16)
        found = self.offsets(1, 5, count, len(data))
        keys = []
        for start, end in zip(found, found[1:]):
            self._block(data[start:end], min(16, self.keys - len(keys)), keys)
        return keys

    def _block(self, data, count, keys):
        where = self.damage(0, "").offset
        fields = Fields(data, self.path, where)
        least, bits = fields.number(6), (fields.u8(), fields.u8())
        if bits[0] > 48 or bits[1] > 32:
            raise self.damage(0, "the columns of a block are too wide")
        sequences, label_sets = (_packed(fields, count, width) for width in bits)
        sizes = fields.take(count)
        previous = b""
        for index in range(count):
            key = ImageKey()
            shared = fields.varint() if index else 0
            if shared > len(previous):
                raise self.damage(0, "a block of keys is cut")
            key.key = previous = previous[:shared] + fields.take(fields.varint(1 << 16))
            key.sequence = least + sequences[index]
            key.label_set = label_sets[index]
            key.size_class = sizes[index]
            if key.sequence >> 48:
                raise self.damage(0, f"the sequence of key {len(keys)} is out of bounds")
            if keys and keys[-1].key >= key.key:
                raise self.damage(0, f"key {len(keys)} is not in order")
            keys.append(key)
        fields.ended("block of keys")

    def samples(self):
        """The samples, one for every 16 blocks."""
        data = self.section(2)
        count = self.sections[2][2]
        found = self.offsets(2, 4, count, len(data))
        start = 4 * (count + 1)
        if found[-1] + start > len(data):
            raise self.damage(2, "the samples are cut")
        return [data[start + a : start + b] for a, b in zip(found, found[1:])]

    def bucket(self, number):
        """The tags and ordinals of a bucket in use, and whether its keys go on in the next."""
        offset = self.sections[3][0] + _BUCKET * number
        data = self.data[offset : offset + _BUCKET]
        used, goes_on = data[60], data[61]
        if used > 12 or goes_on > 1 or data[62] or data[63]:
            raise self.damage(3, f"bucket {number} cannot be")
        return data[:used], struct.unpack_from(f"<{used}I", data, 12), goes_on

    def find(self, key, ordinal):
        """How far behind its bucket a key stands; None when the table does not lead to it."""
        buckets = self.sections[3][2]
        hashed = key_hash(key, self.seed)
        number = hashed * buckets >> 64
        for probe in range(buckets):
            tags, ordinals, goes_on = self.bucket(number)
            if (hashed & 255, ordinal) in zip(tags, ordinals):
                return probe
            if not goes_on:
                return None
            number = (number + 1) % buckets
        return None

    def list(self, label, number):
        """The ordinals in a list of a label: 0 is that of carriers, 1 that of former ones."""
        data, postings = self.section(5), self.section(4)
        at = _LABEL * self.places[label] + 8 + 16 * number
        entry = data[at : at + 16]
        if len(entry) < 16:
            raise self.damage(5, f"a list of label {label} is missing")
        offset, count, length = struct.unpack("<QII", entry)
        if offset + length > len(postings):
            raise self.damage(5, f"a list of label {label} is out of bounds")
        fields = Fields(postings[offset : offset + length], self.path, self.damage(4, "").offset)
        blocks = [(fields.u32(), fields.u32()) for _ in range(-(-count // 128))]
        ordinals = []
        for index, (first, start) in enumerate(blocks):
            if start != fields.at:
                raise self.damage(4, f"block {index} of a list of label {label} is elsewhere")
            ordinals.append(first)
            for _ in range(min(128, count - 128 * index) - 1):
                ordinals.append(ordinals[-1] + fields.varint())
        fields.ended("list")
        if any(a >= b for a, b in zip(ordinals, ordinals[1:])) or ordinals[-1:] > [self.keys - 1]:
            raise self.damage(4, f"a list of label {label} is not in order or out of bounds")
        return ordinals

    def leads_to(self, table, text, number):
        """Whether a table of strings leads to the string with this number."""
        slots = self.sections[table][2]
        data = self.section(table)
        if not slots or slots & slots - 1 or len(data) != 4 * slots:
            raise self.damage(table, "the size of the table cannot be")
        at = key_hash(text, self.seed) & slots - 1
        for _ in range(slots):
            found = int.from_bytes(data[4 * at : 4 * at + 4], "little")
            if found == number + 1 or not found:
                return found != 0
            at = at + 1 & slots - 1
        return False
