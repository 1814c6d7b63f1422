"""The locator of a sealed segment, compared with what its frames say."""

import struct

from .checksums import xxh64
from .faults import Damage
from .fields import MASK64
from .segment import FOOTER

CHUNK = 16368
_RECORDS = {"blocks": "<III", "slots": "<IH", "frames": "<IIII", "sequences": "<II"}


class Expected:
    """What the locator must hold, gathered frame by frame."""

    def __init__(self, row):
        self._row = row
        self.records = {name: [] for name in _RECORDS}

    def add(self, frame):
        """Takes a frame; those without entries are left out."""
        if not frame.entries:
            return
        blocks, slots = self.records["blocks"], self.records["slots"]
        first_block, first_slot = len(blocks), len(slots)
        for block in frame.blocks:
            word = block.stored | block.raw << 15 | block.codec << 30
            blocks.append((block.offset, word, block.crc))
        for entry in frame.entries:
            if self._row.is_compacted:
                self.records["sequences"].append((entry.sequence - self._row.first, len(slots)))
            slots.append((first_block + entry.slot[0], entry.slot[1]))
        self.records["frames"].append(
            (frame.header.offset, first_slot, first_block, len(frame.entries)))


def problems(segment, expected):
    """Everything in the locator that is not as it must be.

    - Parameters: `expected`, or None when not all frames could be read; then checksums alone are
      compared.
    """
    footer = segment.footer
    counts = {
        "blocks": footer.blocks, "slots": footer.slots, "frames": footer.frames,
        "sequences": footer.sequences,
    }
    sizes = {name: counts[name] * struct.calcsize(form) for name, form in _RECORDS.items()}
    total = sum(size + 8 * -(-size // CHUNK) for size in sizes.values())
    if footer.locator + total != segment.length - FOOTER:
        yield Damage(segment.path, footer.offset, "the counts do not fit the locator's length")
        return
    offset, number = footer.locator, 0
    for name, form in _RECORDS.items():
        found = []
        start = offset
        for at in range(0, sizes[name], CHUNK):
            count = min(CHUNK, sizes[name] - at)
            data = segment.read(offset, count + 8)
            seed = segment.row.id * 0x9E3779B97F4A7C15 & MASK64 ^ number
            if xxh64(data[:count], seed) != int.from_bytes(data[count:], "little"):
                yield Damage(segment.path, offset, "the checksum of a locator's chunk is wrong")
            found.extend(struct.iter_unpack(form, data[:count]))
            offset += count + 8
            number += 1
        if name == "blocks":
            raws = [word >> 15 & 0x7FFF for _, word, _ in found]
        elif name == "slots":
            found = [_normal(block, position, raws) for block, position in found]
        if expected is not None:
            yield from _differences(segment, name, start, found, expected.records[name])


def _normal(block, position, raws):
    """A slot; what stands behind the last byte of a block (an empty value) begins the next."""
    if block < len(raws) and position == raws[block]:
        return block + 1, 0
    return block, position


def _differences(segment, name, start, found, expected):
    """The first record of a section that the frames do not bear out."""
    if name == "sequences":
        expected = sorted(expected)
    size = struct.calcsize(_RECORDS[name])
    for index, (a, b) in enumerate(zip(found, expected)):
        if a != b:
            at = index * size
            offset = start + at + 8 * (at // CHUNK)
            yield Damage(segment.path, offset, f"the locator's {name} say {a}, the frames {b}")
            return
    if len(found) != len(expected):
        yield Damage(
            segment.path, start, f"the locator has {len(found)} {name}, the frames {len(expected)}")
