"""A store: what it holds now, what it held, and every entry."""

import subprocess
import sys
import uuid

from . import heads, ndjson
from .faults import Damage, HistoryGone, Usage
from .image import is_derived
from .manifest import newest, read_copies
from .segment import ActiveWalk, ContentCache, Segment
from .zstd import decompressor


def machine_boot_id():
    """Names this run of the machine, as MANIFEST does; None when the system does not tell."""
    try:
        if sys.platform == "darwin":
            command = ["sysctl", "-n", "kern.bootsessionuuid"]
            text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        else:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                text = file.read()
        return uuid.UUID(text.strip()).bytes
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


class Store:
    """An open store, as it is at this moment; nothing is written, no lock is taken."""

    def __init__(self, directory):
        self.directory = directory
        self.zstd = decompressor()
        self.cache = ContentCache()
        self.manifest = newest(directory, read_copies(directory))
        self.segments = []

    def open(self):
        """Opens all segments.

        A writer may have replaced some of them since MANIFEST was read; then it lists others by
        now, and the opening begins again.
        """
        while True:
            try:
                self.segments = [self.segment(row) for row in self.manifest.segments]
                break
            except Damage:
                now = newest(self.directory, read_copies(self.directory))
                if now.generation <= self.manifest.generation:
                    raise
                self.manifest = now
        for segment in self.segments:
            segment.open()
        return self

    def segment(self, row):
        return Segment(self.directory, row, self.manifest.store, self.zstd, self.cache)

    def frames(self, segment):
        """The segment's part of the log; damage behind it is told from a torn tail."""
        if segment.row.is_sealed:
            yield from segment.frames()
            return
        walk = ActiveWalk(segment)
        damage = tail_damage(walk, self.manifest)
        if damage:
            raise damage
        yield from walk.frames

    def entries(self, segments=None):
        """Every entry, in file order."""
        for segment in self.segments if segments is None else segments:
            for frame in self.frames(segment):
                entries, frame.entries = frame.entries, []
                yield from entries

    def last(self):
        """The highest sequence that was given out."""
        last = self.manifest.last
        for segment in self.segments:
            if not segment.row.is_sealed:
                last = max(last, ActiveWalk(segment).next - 1)
        return last

    def check_view(self, sequence):
        """Refuses a state that cannot be told."""
        last = self.last()
        if sequence > last:
            raise Usage(f"sequence {sequence} is in the future: the last one is {last}")
        floor = self.manifest.history_from
        if sequence < floor and floor > 1:
            raise HistoryGone(
                f"the state at sequence {sequence} is no longer kept; the first is {floor}")

    def state(self, sequence=None):
        """The lines of all keys that are there, in byte order."""
        if sequence is not None:
            self.check_view(sequence)
        found = {}
        for entry in self.entries():
            if entry.kind == heads.RECORD or is_derived(entry.key):
                continue
            if sequence is not None and entry.sequence > sequence:
                continue
            other = found.get(entry.key)
            if other is None or other.sequence < entry.sequence:
                found[entry.key] = entry
        puts = self._touched(entry for entry in found.values() if entry.kind == heads.TOUCH)
        for key in sorted(found):
            entry = found[key]
            if entry.is_there:
                yield self._state_line(entry, puts)

    def _state_line(self, entry, puts):
        attributes = self._attributes(entry)
        put = entry
        if entry.kind == heads.TOUCH:
            put = puts[entry.value_sequence]
            own, attributes = attributes, self._attributes(put)
            attributes.hash = own.hash or attributes.hash
            if own.max_age is not None:
                attributes.max_age = own.max_age
        return ndjson.state_line(put.key, put.frame.value(put), attributes, put.labels)

    def _touched(self, touches):
        """The puts that touches name, by sequence."""
        wanted = {touch.value_sequence: touch for touch in touches}
        puts = {}
        segments = [
            segment for segment in self.segments
            if any(segment.row.first <= sequence for sequence in wanted)
            and (not segment.row.is_sealed
                 or any(sequence <= segment.row.last for sequence in wanted))
        ]
        for entry in self.entries(segments) if wanted else ():
            touch = wanted.get(entry.sequence)
            if touch is not None and entry.kind == heads.PUT and entry.key == touch.key:
                puts[entry.sequence] = entry
        for sequence, touch in wanted.items():
            if sequence not in puts:
                raise Damage(
                    touch.frame.segment.path, touch.frame.header.offset,
                    f"touch {touch.sequence} names {sequence}, which is no put of its key")
        return puts

    def history(self):
        """The lines of all entries, by sequence."""
        for segment in self.segments:
            entries = self.entries([segment])
            if segment.row.is_compacted:
                entries = sorted(entries, key=lambda entry: entry.sequence)
            for entry in entries:
                if entry.kind != heads.RECORD and not is_derived(entry.key):
                    value = entry.frame.value(entry) if entry.kind == heads.PUT else b""
                    yield ndjson.history_line(
                        entry, value, self._attributes(entry), self.manifest.replica)

    @staticmethod
    def _attributes(entry):
        frame = entry.frame
        return heads.attributes(entry.attributes, frame.segment.path, frame.header.offset)


def tail_damage(walk, manifest):
    """Damage when what follows the log cannot be a torn tail; else None.

    See "Opening for writing" in DurabilityAndRecovery.md.
    """
    if walk.stop is None or walk.tail_is_zero():
        return None
    beyond = walk.beyond()
    if not beyond:
        return None
    proves = any(header.durable_through >= walk.expected for header in beyond)
    if not proves and manifest.boot != machine_boot_id():
        return None
    return Damage(
        walk.stop.path, walk.stop.offset,
        f"{walk.stop.reason}, and a frame that was written later follows at {beyond[0].offset}")
