"""Frames: header, block table, heads, and where each value stands."""

from . import heads
from .checksums import crc32c, xxh64
from .faults import Damage, TooNew
from .fields import Fields

HEADER = 64
SYNC = 0x4D415246
MOST_BLOCK = 16384
MOST_HISTORY_BLOCK = 1 << 20
RAW, ZSTD, ZSTD_DICTIONARY = 0, 1, 2
_MOST_PAYLOAD = 72 << 20
_MOST_HEADS = 1 << 20
_MOST_ENTRIES = 65536
_MOST_BLOCKS = 8192


class FrameHeader:
    """The 64 bytes before a payload, checked by themselves."""

    __slots__ = (
        "path", "offset", "bytes", "stored", "heads_raw", "first", "durable_through", "entries",
        "blocks", "front_hash", "has_sequences", "is_history", "needs_dictionary",
        "uses_dictionary", "front", "salt",
    )

    def __init__(self, data, path, offset, salt):
        if len(data) < HEADER:
            raise Damage(path, offset, "the file ends within a frame's header")
        fields = Fields(data, path, offset)
        self.path = path
        self.offset = offset
        self.salt = salt
        self.bytes = data
        if fields.u32() != SYNC ^ salt:
            raise Damage(path, offset, "no frame begins here")
        seeded = data[8:] + salt.to_bytes(4, "little") + offset.to_bytes(8, "little")
        if fields.u32() != crc32c(seeded):
            raise Damage(path, offset, "the checksum of a frame's header is wrong")
        self.stored = fields.u32()
        self.heads_raw = fields.u32()
        self.first = fields.u64()
        self.durable_through = fields.u64()
        self.entries = fields.u32()
        self.blocks = fields.u32()
        self.front_hash = fields.u64()
        codec = fields.u8()
        flags = fields.u8()
        dictionary = fields.number(2)
        self.front = fields.u32()
        if codec or flags > 3 or dictionary > 1:
            raise TooNew(f"{path}, offset {offset}: a frame's codes are not known to this reader")
        self.has_sequences = bool(flags & 1)
        self.is_history = bool(flags & 2)
        self.needs_dictionary = dictionary == 1
        self.uses_dictionary = False
        self._check(fields)

    def _check(self, fields):
        least = 2 if self.has_sequences else 8
        if (
            self.stored > _MOST_PAYLOAD
            or self.heads_raw > _MOST_HEADS
            or self.entries > _MOST_ENTRIES
            or self.blocks > _MOST_BLOCKS
            or not least * self.blocks <= self.front <= self.stored
            or self.is_history and not self.has_sequences
            or (self.entries == 0 and (self.blocks > 0 or self.heads_raw > 0))
            or fields.u64() != 0
        ):
            raise Damage(self.path, self.offset, "a frame's header is not within its bounds")

    @property
    def most_block(self):
        return MOST_HISTORY_BLOCK if self.is_history else MOST_BLOCK

    @property
    def payload(self):
        return self.offset + HEADER

    @property
    def padding(self):
        """Where the zeros begin."""
        return self.payload + self.stored

    @property
    def end(self):
        """Where the next frame begins."""
        return self.padding + 7 & ~7


class Block:
    """A row of a block table."""

    __slots__ = ("offset", "stored", "raw", "codec")

    def __init__(self, offset, stored, raw, codec):
        self.offset = offset
        self.stored = stored
        self.raw = raw
        self.codec = codec

    def fault(self, most):
        """Why the row cannot be; None when it can."""
        length = self.stored - 4
        if not 1 <= self.raw <= most or not 1 <= length <= self.raw:
            return "lengths"
        if self.codec == RAW and length != self.raw:
            return "raw length"
        return None

    def contents(self, data, salt):
        """The stored bytes without their checksum; None when that is wrong."""
        seeded = data[:-4] + salt.to_bytes(4, "little") + self.offset.to_bytes(8, "little")
        return data[:-4] if crc32c(seeded) == int.from_bytes(data[-4:], "little") else None


class Frame:
    """A frame whose front was checked and decoded; its blocks are read when they are needed.

    - Parameters: `segment`, whose bytes they are; `header`, the frame's.
    """

    __slots__ = ("segment", "header", "blocks", "entries")

    def __init__(self, segment, header):
        self.segment = segment
        self.header = header
        front = segment.read(header.payload, header.front)
        if xxh64(front) != header.front_hash:
            raise Damage(segment.path, header.offset, "the checksum of a frame's front is wrong")
        fields = Fields(front, segment.path, header.payload)
        self.blocks = self._table(fields)
        self.entries = self._decode(front[fields.at :], header.payload + fields.at)

    def _table(self, fields):
        header, path = self.header, self.segment.path
        blocks = []
        offset = header.payload + header.front
        for _ in range(header.blocks):
            at = header.payload + fields.at
            word = fields.varint()
            block = Block(offset, word >> 2, fields.varint(), word & 3)
            if block.codec > 2:
                raise TooNew(f"{path}, offset {at}: the codec is not known")
            fault = block.fault(header.most_block)
            if fault:
                raise Damage(path, at, f"the {fault} of a block cannot be")
            blocks.append(block)
            offset += block.stored
        if offset != header.padding:
            raise Damage(path, header.offset, "front and blocks do not add up to the payload")
        header.uses_dictionary = any(block.codec == ZSTD_DICTIONARY for block in blocks)
        return blocks

    def _decode(self, stored, place):
        header, path = self.header, self.segment.path
        if not header.entries:
            if stored:
                raise Damage(path, place, "heads of no entries")
            return []
        entries = heads.decode(
            Fields(stored, path, place), header,
            lambda data, raw, codec: self.segment.decoded(data, raw, codec, place))
        if header.needs_dictionary != header.uses_dictionary:
            raise Damage(path, header.offset, "the mark for the dictionary is wrong")
        self._place(entries)
        return entries

    def _place(self, entries):
        """Finds where each value begins: they follow each other through the raw blocks."""
        blocks = self.blocks
        most = self.header.most_block
        block = position = 0
        for entry in entries:
            entry.frame = self
            length = entry.value_length
            if length > most and position:
                raise self._misplaced(entry)
            entry.slot = (block, position)
            while length:
                if block == len(blocks):
                    raise self._misplaced(entry)
                taken = min(length, blocks[block].raw - position)
                length -= taken
                position += taken
                # A value ends its block or is followed in it; only long ones go beyond it.
                if length and (entry.value_length <= most or blocks[block].raw != most):
                    raise self._misplaced(entry)
                if entry.value_length > most and not length and position < blocks[block].raw:
                    raise self._misplaced(entry)
                if position == blocks[block].raw:
                    block, position = block + 1, 0
        if block != len(blocks):
            raise Damage(self.segment.path, self.header.offset, "blocks hold more than the values")

    def _misplaced(self, entry):
        return Damage(
            self.segment.path, self.header.offset,
            f"the value of entry {entry.sequence} does not fit its blocks")

    def check_blocks(self):
        """Compares the stored bytes of every block with their checksum."""
        if not self.blocks:
            return
        start = self.blocks[0].offset
        data = self.segment.read(start, self.header.padding - start)
        for block in self.blocks:
            at = block.offset - start
            if block.contents(data[at : at + block.stored], self.header.salt) is None:
                raise Damage(self.segment.path, block.offset, "the checksum of a block is wrong")

    def check_padding(self):
        """Makes sure that zeros fill up the last eight bytes."""
        header = self.header
        if any(self.segment.read(header.padding, header.end - header.padding)):
            raise Damage(self.segment.path, header.padding, "the padding of a frame is not zero")

    def value(self, entry):
        """The value of one of the frame's entries."""
        index, position = entry.slot
        parts, left = [], entry.value_length
        while left:
            content = self.segment.content(self, index)
            part = content[position : position + left]
            parts.append(part)
            left -= len(part)
            index, position = index + 1, 0
        return parts[0] if len(parts) == 1 else b"".join(parts)
