"""Segments: header pages, dictionary, footer, and the walk over their frames."""

import os
from collections import OrderedDict

from .checksums import crc32c, xxh64
from .faults import Damage, InputOutput
from .fields import Fields, rest_is_zero
from .frame import HEADER, RAW, SYNC, ZSTD_DICTIONARY, Frame, FrameHeader
from .manifest import features, versions
from .zstd import frame_fault

PAGE = 4096
FOOTER = 128
_MAGIC = b"TIDESEG\n"
_FOOTER_MAGIC = b"TIDELOC\n"
_MOST_DICTIONARY = 65536


class SegmentHeader:
    """One copy of a header page."""

    def __init__(self, data, path, offset):
        if data[:8] != _MAGIC:
            raise Damage(path, offset, "no segment's header begins here")
        if crc32c(data[:4092]) != int.from_bytes(data[4092:], "little"):
            raise Damage(path, offset, "the checksum of a header page is wrong")
        versions(data, path)
        fields = Fields(data, path, offset, at=20)
        features(fields.u32(), path)
        self.store = fields.take(16)
        self.id = fields.u64()
        self.first = fields.u64()
        self.salt = fields.u32()
        self.frames = fields.u32()
        self.kind = fields.u8()
        self.rest = fields.take(3)
        self.dictionary = fields.u32()
        self.dictionary_length = fields.u32()
        self.dictionary_copy = fields.u32()
        self.dictionary_hash = fields.u64()
        self.rest += data[88:4092]

    def fault(self, row, store):
        """Why this is not the header of the segment in MANIFEST's row; None when it is."""
        if (self.store, self.id, self.first, self.salt, self.kind) != (
            store, row.id, row.first, row.salt, int(row.is_compacted)
        ):
            return "the header is that of another segment"
        if any(self.rest):
            return "what must be zero in the header is not"
        length = self.dictionary_length
        if length == 0:
            is_right = self.frames == 2 * PAGE and not (
                self.dictionary or self.dictionary_copy or self.dictionary_hash)
        else:
            is_right = (
                self.kind == 1
                and length <= _MOST_DICTIONARY
                and self.dictionary == 2 * PAGE
                and self.dictionary_copy % PAGE == 0
                and self.dictionary_copy >= 2 * PAGE + length
                and self.frames % 8 == 0
                and self.dictionary_copy + length <= self.frames
            )
        return None if is_right else "the places of dictionary and frames cannot be"


class Footer:
    """The last 128 bytes of a sealed segment."""

    def __init__(self, data, path, offset, salt):
        if data[:8] != _FOOTER_MAGIC:
            raise Damage(path, offset, "no footer begins here")
        if xxh64(data[:120], salt) != int.from_bytes(data[120:], "little"):
            raise Damage(path, offset, "the checksum of the footer is wrong")
        fields = Fields(data, path, offset, at=8)
        self.id = fields.u64()
        self.first = fields.u64()
        self.last = fields.u64()
        self.locator = fields.u64()
        self.blocks, self.slots = fields.u32(), fields.u32()
        self.frames, self.sequences = fields.u32(), fields.u32()
        self.chain = fields.u64()
        seconds = int.from_bytes(fields.take(8), "little", signed=True)
        nanoseconds = fields.u32()
        has_latest = fields.u32()
        self.latest = (seconds, nanoseconds) if has_latest else None
        self.raw_bytes = fields.u64()
        self.commit_time = fields.u64()
        self.offset = offset
        self.block_bytes, self.slot_bytes = fields.u32(), fields.u32()
        self.sequence_bytes = fields.u32()
        recordless = fields.u32()
        self.is_recordless = recordless == 1
        self.frame_bytes = fields.u32()
        self.is_odd = has_latest > 1 or recordless > 1 or any(data[116:120])
        self.is_odd |= not has_latest and bool(seconds or nanoseconds)

    def fault(self, row, frames):
        """Why this does not belong to the segment in MANIFEST's row; None when it does."""
        if (self.id, self.first, self.last) != (row.id, row.first, row.last):
            return "the footer is that of another segment"
        if (self.slots, self.chain) != (row.entries, row.chain):
            return "footer and MANIFEST do not agree on entries or chain"
        if (self.latest, self.raw_bytes) != (row.latest, row.raw_bytes):
            return "footer and MANIFEST do not agree on latest time or raw bytes"
        if self.sequences != (self.slots if row.is_compacted else 0):
            return "the number of sequences cannot be"
        if not frames <= self.locator <= self.offset or self.locator % 8:
            return "the place of the locator cannot be"
        return "what must be zero in the footer is not" if self.is_odd else None


class ContentCache:
    """Decoded blocks, the last used ones, since neighbours among keys share them."""

    _MOST_BYTES = 96 << 20

    def __init__(self):
        self._contents = OrderedDict()
        self._bytes = 0

    def get(self, key):
        content = self._contents.get(key)
        if content is not None:
            self._contents.move_to_end(key)
        return content

    def put(self, key, content):
        self._contents[key] = content
        self._bytes += len(content)
        while self._bytes > self._MOST_BYTES:
            self._bytes -= len(self._contents.popitem(last=False)[1])


class Segment:
    """An open segment.

    The file is opened at once and stays open: a writer that compacts beside this reader removes
    the name, and the bytes remain.
    """

    def __init__(self, directory, row, store, zstd, cache):
        self.row = row
        self.path = row.path
        self.store = store
        self.zstd = zstd
        self.cache = cache
        try:
            self._file = os.open(os.path.join(directory, row.path), os.O_RDONLY)
        except FileNotFoundError:
            raise Damage(row.path, 0, "the file is missing") from None
        except OSError as error:
            raise InputOutput(f"{row.path}: {error.strerror}") from None
        self.length = os.fstat(self._file).st_size
        self.header = None
        self.dictionary = None
        self.footer = None

    def __del__(self):
        if hasattr(self, "_file"):
            os.close(self._file)

    def read(self, offset, count):
        """So many bytes; fewer are damage."""
        try:
            data = os.pread(self._file, count, offset)
        except OSError as error:
            raise InputOutput(f"{self.path}: {error.strerror}") from None
        if len(data) < count:
            raise Damage(self.path, offset, f"the file ends before {count} bytes")
        return data

    def page(self, offset):
        """One of the two header pages, checked."""
        header = SegmentHeader(self.read(offset, PAGE), self.path, offset)
        fault = header.fault(self.row, self.store)
        if fault:
            raise Damage(self.path, offset, fault)
        return header

    def dictionary_at(self, offset):
        """One of the two copies of the dictionary, checked."""
        data = self.read(offset, self.header.dictionary_length)
        if xxh64(data) != self.header.dictionary_hash:
            raise Damage(self.path, offset, "the checksum of the dictionary is wrong")
        return data

    def open(self):
        """Reads what comes before and behind the frames."""
        self.open_header()
        if self.row.is_sealed:
            self.open_footer()
        return self

    def open_header(self):
        self.header = self._either(self.page, 0, PAGE)
        if self.header.dictionary_length:
            self.dictionary = self._either(
                self.dictionary_at, self.header.dictionary, self.header.dictionary_copy)

    @staticmethod
    def _either(read, first, second):
        try:
            return read(first)
        except Damage as damage:
            try:
                return read(second)
            except Damage:
                raise damage from None

    def open_footer(self):
        row = self.row
        if self.length != row.length:
            raise Damage(
                self.path, min(self.length, row.length),
                f"the file has {self.length} bytes, and {row.length} when it was sealed")
        offset = max(self.length - FOOTER, 0)
        footer = Footer(self.read(offset, FOOTER), self.path, offset, row.salt)
        fault = footer.fault(row, self.header.frames)
        if fault:
            raise Damage(self.path, offset, fault)
        self.footer = footer

    def frame_header(self, offset):
        """The header of the frame that must begin here."""
        count = min(HEADER, max(self.length - offset, 0))
        return FrameHeader(self.read(offset, count), self.path, offset, self.row.salt)

    def frames(self):
        """All frames of the log, in file order."""
        return self._sealed_frames() if self.row.is_sealed else iter(ActiveWalk(self).frames)

    def _sealed_frames(self):
        offset, chain, count = self.header.frames, 0, 0
        expected = self.row.first
        while offset < self.footer.locator:
            header = self.frame_header(offset)
            frame = Frame(self, header)
            expected = self.check_sequences(frame, expected)
            chain = xxh64(header.bytes, chain)
            count += header.entries
            yield frame
            offset = header.end
        if offset != self.footer.locator or chain != self.row.chain or count != self.row.entries:
            raise Damage(self.path, offset, "the frames are not those that were sealed")

    def check_sequences(self, frame, expected):
        """Makes sure of the entries' sequences.

        - Returns: that which the next frame of an appended segment must begin with.
        """
        header, row = frame.header, self.row
        if header.has_sequences != row.is_compacted:
            raise Damage(self.path, header.offset, "the frame belongs into another kind of segment")
        if not row.is_compacted and header.first != expected:
            raise Damage(
                self.path, header.offset, f"the frame begins with {header.first}, not {expected}")
        last = row.last if row.is_sealed else (1 << 48) - 1
        for entry in frame.entries:
            if not row.first <= entry.sequence <= last:
                raise Damage(
                    self.path, header.offset, f"sequence {entry.sequence} is not the segment's")
        return expected + header.entries

    def decoded(self, stored, raw, codec, offset):
        """The content that stored bytes stand for."""
        if codec == RAW:
            content = stored if len(stored) == raw else None
            fault = "another length"
        else:
            fault = frame_fault(stored)
            dictionary = self.dictionary if codec == ZSTD_DICTIONARY else None
            if codec == ZSTD_DICTIONARY and dictionary is None:
                fault = "the segment has no dictionary"
            content = None if fault else self.zstd.decompress([(stored, raw)], dictionary)[0]
        if content is None:
            reason = fault or "zstd cannot decompress them to the length that is told"
            raise Damage(self.path, offset, f"the bytes cannot be decoded: {reason}")
        return content

    def content(self, frame, index):
        """The raw bytes of a block, whose checksum is compared first."""
        block = frame.blocks[index]
        content = self.cache.get((self.row.id, block.offset))
        if content is None and self.zstd.prefers_many:
            self._read_ahead(frame)
            content = self.cache.get((self.row.id, block.offset))
        if content is None:
            stored = block.contents(self.read(block.offset, block.stored), self.row.salt)
            if stored is None:
                raise Damage(self.path, block.offset, "the checksum of a block is wrong")
            content = self.decoded(stored, block.raw, block.codec, block.offset)
            self.cache.put((self.row.id, block.offset), content)
        return content

    def _read_ahead(self, frame):
        """Decodes the compressed blocks of a frame in few calls; broken ones are left out."""
        for codec in (1, ZSTD_DICTIONARY):
            dictionary = self.dictionary if codec == ZSTD_DICTIONARY else None
            found = []
            for block in frame.blocks:
                if block.codec != codec:
                    continue
                stored = block.contents(self.read(block.offset, block.stored), self.row.salt)
                if stored and not frame_fault(stored):
                    found.append((block, stored))
            if not found or codec == ZSTD_DICTIONARY and dictionary is None:
                continue
            contents = self.zstd.decompress([(s, b.raw) for b, s in found], dictionary)
            for (block, _), content in zip(found, contents):
                if content is not None:
                    self.cache.put((self.row.id, block.offset), content)


class ActiveWalk:
    """Finds the end of the log in the active segment.

    `frames` are those of the log, `end` is the offset behind them, `next` the sequence that the
    next entry gets. `walked` is the first place where no valid frame begins, `expected` the
    sequence that would have followed there, and `stop` says why.
    """

    def __init__(self, segment):
        self.segment = segment
        self.end = offset = segment.header.frames
        self.next = expected = segment.row.first
        self.stop = None
        walked, whole = [], 0
        while offset < segment.length:
            try:
                frame = self._frame(offset, expected)
            except Damage as damage:
                self.stop = damage
                break
            # A frame without entries belongs to no batch: it counts unless one is unfinished.
            is_whole = frame.entries[-1].ends_batch if frame.entries else whole == len(walked)
            walked.append(frame)
            offset = frame.header.end
            expected += frame.header.entries
            if is_whole:
                whole, self.end, self.next = len(walked), offset, expected
        self.frames = walked[:whole]
        self.walked = offset
        self.expected = expected

    def _frame(self, offset, expected):
        frame = Frame(self.segment, self.segment.frame_header(offset))
        self.segment.check_sequences(frame, expected)
        frame.check_blocks()
        frame.check_padding()
        return frame

    def beyond(self):
        """Headers of frames behind the place where the walk stopped, which nothing led to."""
        segment = self.segment
        # The header at that place may be right, and what follows it torn.
        start = self.walked + 8
        data = segment.read(start, max(segment.length - start, 0))
        sync = (SYNC ^ segment.row.salt).to_bytes(4, "little")
        found = []
        at = data.find(sync)
        while at >= 0:
            if at % 8 == 0:
                try:
                    found.append(segment.frame_header(start + at))
                except Damage:
                    pass
            at = data.find(sync, at + 1)
        return found

    def tail_is_zero(self):
        """Whether nothing but space taken in advance follows the log."""
        segment = self.segment
        return rest_is_zero(segment.read(self.end, segment.length - self.end), 0)
