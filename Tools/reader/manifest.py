"""MANIFEST: the list of all that belongs to a store."""

import os
from dataclasses import dataclass, field
from typing import List, Optional, Tuple

from .checksums import xxh64
from .faults import Damage, InputOutput, NoStore, TooNew
from .fields import Fields, rest_is_zero

NAMES = ("MANIFEST.0", "MANIFEST.1")
_MAGIC = b"TIDEMAN\n"
_MOST_BYTES = 64 << 20
_PADDING = 4096
_LEAST_BYTES = 16384
SEQUENCES = 1 << 48


@dataclass
class SegmentRow:
    """MANIFEST's row of a segment."""

    id: int
    is_sealed: bool
    is_compacted: bool
    salt: int
    first: int
    last: int
    length: int
    entries: int
    raw_bytes: int
    chain: int
    latest: Optional[Tuple[int, int]]

    @property
    def path(self):
        return f"log/{self.first:020d}-{self.id:08x}.seg"


@dataclass
class ImageRow:
    """MANIFEST's row of an index image."""

    id: int
    sequence: int
    length: int

    @property
    def path(self):
        return f"index/{self.id:08x}.idx"


@dataclass
class DamageRow:
    """A place that an earlier check found damaged."""

    is_accepted: bool
    segment: int
    offset: int
    length: int
    first: int
    last: int
    reason: str


@dataclass
class Manifest:
    """The fields of one copy, in their order."""

    generation: int
    store: bytes
    replica: bytes
    boot: bytes
    is_closed: bool
    hash_seed: int
    retention: Tuple[Optional[int], Optional[int], Optional[int]]
    history_from: int
    dropped_through: int
    evicted_through: int
    next_segment: int
    next_image: int
    commit_time: int
    last: int
    history_time: Optional[Tuple[int, int]]
    epochs: List[Tuple[int, int]] = field(default_factory=list)
    segments: List[SegmentRow] = field(default_factory=list)
    images: List[ImageRow] = field(default_factory=list)
    damage: List[DamageRow] = field(default_factory=list)


def versions(data, path):
    """Refuses what a later version of the format wrote; all files have this at offset 8."""
    major = int.from_bytes(data[8:10], "little")
    if major != 4:
        raise TooNew(f"{path}: version {major} of the format is not known to this reader")


def features(incompatible, path):
    """Refuses a file whose meaning depends on a feature; version 1.0 has none."""
    if incompatible:
        raise TooNew(f"{path}: feature mask {incompatible:#x} is not known to this reader")


def read_copy(directory, name):
    """One copy; None when its file is missing."""
    try:
        with open(os.path.join(directory, name), "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputOutput(f"{name}: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise Damage(name, 0, "longer than any MANIFEST")
    if len(data) < 40 or data[:8] != _MAGIC:
        raise Damage(name, 0, "no MANIFEST begins here")
    if xxh64(data[:32] + bytes(8) + data[40:]) != int.from_bytes(data[32:40], "little"):
        raise Damage(name, 32, "the checksum is wrong")
    versions(data, name)
    features(int.from_bytes(data[20:24], "little"), name)
    length = int.from_bytes(data[24:32], "little")
    if not 40 <= length <= len(data):
        raise Damage(name, 24, "the length of the fields is wrong")
    if len(data) % _PADDING or len(data) < _LEAST_BYTES or not rest_is_zero(data, length):
        raise Damage(name, length, "the fields are not followed by zeros up to a whole step")
    fields = Fields(data[:length], name, at=40)
    manifest = _decode(fields)
    fields.ended("fields")
    _check(manifest, name)
    return manifest


def _decode(fields):
    manifest = Manifest(
        generation=fields.u64(),
        store=fields.take(16),
        replica=fields.take(16),
        boot=fields.take(16),
        is_closed=fields.flag(),
        hash_seed=fields.u64(),
        retention=(fields.optional(), fields.optional(), fields.optional(1 << 32)),
        history_from=fields.varint(SEQUENCES),
        dropped_through=fields.varint(SEQUENCES),
        evicted_through=fields.varint(SEQUENCES),
        next_segment=fields.varint(),
        next_image=fields.varint(),
        commit_time=fields.varint(),
        last=fields.varint(SEQUENCES),
        history_time=_time(fields),
    )
    for _ in range(fields.varint(4096 + 1)):
        manifest.epochs.append((fields.u64(), fields.varint(SEQUENCES)))
    for _ in range(fields.varint(65536 + 1)):
        manifest.segments.append(_segment(fields))
    for _ in range(fields.varint(8 + 1)):
        manifest.images.append(
            ImageRow(fields.varint(), fields.varint(SEQUENCES), fields.varint()))
    for _ in range(fields.varint(1024 + 1)):
        manifest.damage.append(_damage(fields))
    return manifest


def _code(fields, what):
    """A u8 that is 0 or 1 in this version of the format, and may be more in a later one."""
    value = fields.u8()
    if value > 1:
        raise TooNew(f"{fields.path}: {what} {value} is not known to this reader")
    return value == 1


def _time(fields):
    """Seconds and nanoseconds; None where the time is not known."""
    if not _code(fields, "mark"):
        return None
    return (fields.zigzag(), fields.varint(10**9))


def _segment(fields):
    return SegmentRow(
        id=fields.varint(),
        is_sealed=_code(fields, "state"),
        is_compacted=_code(fields, "kind"),
        salt=fields.u32(),
        first=fields.varint(SEQUENCES),
        last=fields.varint(SEQUENCES),
        length=fields.varint(),
        entries=fields.varint(),
        raw_bytes=fields.varint(),
        chain=fields.u64(),
        latest=_time(fields),
    )


def _damage(fields):
    return DamageRow(
        is_accepted=_code(fields, "state of damage"),
        segment=fields.varint(),
        offset=fields.varint(),
        length=fields.varint(),
        first=fields.varint(),
        last=fields.varint(),
        reason=fields.counted(1024).decode("utf-8", "replace"),
    )


def _check(manifest, name):
    """The rules that rows must keep to one another."""
    end = 1
    for index, row in enumerate(manifest.segments):
        if row.first < end:
            raise Damage(name, 40, f"segment {row.id:08x} overlaps the one before")
        if not row.is_sealed and index + 1 < len(manifest.segments):
            raise Damage(name, 40, f"segment {row.id:08x} is active and not the last")
        if row.last < row.first - (0 if row.is_sealed else 1):
            raise Damage(name, 40, f"segment {row.id:08x} ends before it begins")
        end = row.last + 1


def read_copies(directory):
    """Both copies, as a list of (name, copy or fault)."""
    if not os.path.isdir(directory):
        raise NoStore(f"{directory}: there is no such directory")
    copies = []
    for name in NAMES:
        try:
            copies.append((name, read_copy(directory, name)))
        except (Damage, TooNew) as fault:
            copies.append((name, fault))
    return copies


def refuse_half_created(directory, copies):
    """Tells the beginning of a store from one that is damaged."""
    first, second = (copy for _, copy in copies)
    folders = [os.path.join(directory, name) for name in ("log", "index")]
    has_data = any(os.path.isdir(folder) and os.listdir(folder) for folder in folders)
    if second is None and isinstance(first, Damage) and not has_data:
        raise NoStore(f"{directory}: the creation of a store was interrupted")


def newest(directory, copies):
    """The copy that counts.

    Without any, the directory is no store yet: at best its creation was interrupted.
    """
    valid = [copy for _, copy in copies if isinstance(copy, Manifest)]
    if valid:
        return max(valid, key=lambda copy: copy.generation)
    refuse_half_created(directory, copies)
    # A fault of a later version says more than another one: the file is whole.
    faults = [copy for _, copy in copies if copy is not None]
    for fault in sorted(faults, key=lambda fault: fault.status, reverse=True):
        raise fault
    log = os.path.join(directory, "log")
    if os.path.isdir(log) and os.listdir(log):
        raise Damage(NAMES[0], 0, "both copies of MANIFEST are missing")
    raise NoStore(f"{directory}: the directory holds no store")
