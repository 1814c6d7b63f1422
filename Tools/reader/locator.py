"""The locator of a sealed segment, compared with what its frames say."""

from .checksums import xxh64
from .faults import Damage
from .fields import MASK64
from .segment import FOOTER

CHUNK = 16320
_GROUP = 128
_GAP = 3


class Expected:
    """The content that the locator must have, gathered frame by frame."""

    def __init__(self, row):
        self._row = row
        self._blocks, self._values, self._frames, self._sequences = [], [], [], []
        self._raw = 0

    def add(self, frame):
        """Takes a frame; those without entries are left out."""
        if not frame.entries:
            return
        first = len(self._values)
        start = self._raw
        for entry in frame.entries:
            if self._row.is_compacted:
                self._sequences.append((entry.sequence, len(self._values)))
            self._values.append((start,))
            start += entry.value_length
        for block in frame.blocks:
            self._blocks.append((self._raw, block.offset << 2 | block.codec))
            self._raw += block.raw
        if frame.blocks:
            last = frame.blocks[-1]
            self._blocks.append((self._raw, last.offset + last.stored << 2 | _GAP))
        self._frames.append((2 * first + frame.header.is_history, frame.header.offset))

    @property
    def tables(self):
        return {
            "blocks": self._blocks,
            "values": self._values,
            "frames": self._frames,
            "sequences": sorted(self._sequences),
        }


def problems(segment, expected):
    """Everything in the locator that is not as it must be.

    - Parameters: `expected`, or None when not all frames could be read; then checksums alone are
      compared.
    """
    footer = segment.footer
    groups = {
        "blocks": -(-footer.blocks // _GROUP), "values": -(-footer.slots // _GROUP),
        "frames": -(-footer.frames // _GROUP), "sequences": -(-footer.sequences // _GROUP),
    }
    sizes = [
        32 * groups["blocks"], footer.block_bytes, 16 * groups["values"], footer.slot_bytes,
        32 * groups["frames"], footer.frame_bytes, 32 * groups["sequences"], footer.sequence_bytes,
    ]
    total = sum(size + 8 * -(-size // CHUNK) for size in sizes)
    if footer.locator + total != segment.length - FOOTER:
        yield Damage(segment.path, footer.offset, "the counts do not fit the locator's length")
        return
    sections = []
    offset, number = footer.locator, 0
    for size in sizes:
        section = bytearray()
        for at in range(0, size, CHUNK):
            count = min(CHUNK, size - at)
            data = segment.read(offset, count + 8)
            seed = segment.row.id * 0x9E3779B97F4A7C15 & MASK64 ^ number
            if xxh64(data[:count], seed) != int.from_bytes(data[count:], "little"):
                yield Damage(segment.path, offset, "the checksum of a locator's chunk is wrong")
            section += data[:count]
            offset += count + 8
            number += 1
        sections.append(bytes(section))
    if expected is None:
        return
    found = {
        "blocks": _packed(sections[0], sections[1], footer.blocks, 2),
        "values": _packed(sections[2], sections[3], footer.slots, 1),
        "frames": _packed(sections[4], sections[5], footer.frames, 2),
        "sequences": _packed(sections[6], sections[7], footer.sequences, 2),
    }
    for name, rows in expected.tables.items():
        yield from _differences(segment, name, found[name], rows)


def _packed(records, remainders, rows, columns):
    """Rows of packed columns."""
    decoded = [[] for _ in range(columns)]
    for start in range(0, rows, _GROUP):
        count = min(_GROUP, rows - start)
        for column in range(columns):
            at = (start // _GROUP * columns + column) * 16
            record = int.from_bytes(records[at : at + 16], "little")
            first, bits = record & (1 << 48) - 1, record >> 48 & 0xFFFF
            slope, place = record >> 64 & 0xFFFFFFFF, record >> 96
            length = count * bits + 7 >> 3
            run = int.from_bytes(remainders[place : place + length], "little")
            for index in range(count):
                rest = run >> index * bits & (1 << bits) - 1
                if bits and rest >> bits - 1:
                    rest -= 1 << bits
                decoded[column].append(first + (index * slope >> 8) + rest)
    return list(zip(*decoded))


def _differences(segment, name, found, expected):
    """The first row of a table that the frames do not bear out."""
    for index, (a, b) in enumerate(zip(found, expected)):
        if a != b:
            yield Damage(
                segment.path, segment.footer.locator,
                f"the locator's {name} say {a} in row {index}, the frames {b}")
            return
    if len(found) != len(expected):
        yield Damage(
            segment.path, segment.footer.locator,
            f"the locator has {len(found)} {name}, the frames {len(expected)}")
