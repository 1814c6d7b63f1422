"""Files of attachments: content beside the log, named after its hash."""

import hashlib
import os

from .checksums import crc32c, xxh64
from .faults import Damage
from .fields import Fields

FOLDER = "attachments"
HEADER = 256
PIECE = 64 << 10
TAG = 16
MAGIC = 0x0A54544145444954
SALT = 8
_ENCRYPTED, _RELEASED, _SALTED = 1, 2, 4
_MOST = 1 << 40


def names(directory):
    """The names of the files of attachments, in order."""
    folder = os.path.join(directory, FOLDER)
    if not os.path.isdir(folder):
        return []
    return sorted(name for name in os.listdir(folder) if _is_hash(name))


def _is_hash(name):
    return len(name) == 64 and all(digit in "0123456789abcdef" for digit in name)


def check(directory, name):
    """Reads a file and compares all that it says of itself.

    - Returns: the hash and the length of the content.
    - Throws: `Damage`.
    """
    path = os.path.join(FOLDER, name)
    with open(os.path.join(directory, path), "rb") as file:
        header = file.read(HEADER)
        fields = Fields(header, path)
        if len(header) < HEADER or fields.number(8) != MAGIC:
            raise Damage(path, 0, "no attachment's file")
        if xxh64(header[:248] + bytes(8)) != int.from_bytes(header[248:256], "little"):
            raise Damage(path, 248, "the checksum of the header is wrong")
        fields.number(4)
        flags, length = fields.number(4), fields.number(8)
        digest, number = fields.take(32), fields.number(8)
        known = _ENCRYPTED | _RELEASED | (_SALTED if flags & _ENCRYPTED else 0)
        if flags & ~known or length > _MOST:
            raise Damage(path, 12, "flags or length are out of bounds")
        if digest.hex() != name:
            raise Damage(path, 24, "the file has another's name")
        if not flags & _RELEASED:
            _pieces(file, path, digest, length, number, flags)
        if file.read(1):
            raise Damage(path, file.tell() - 1, "bytes behind the end")
    return digest, length


def _pieces(file, path, digest, length, number, flags):
    is_encrypted = flags & _ENCRYPTED
    content = hashlib.sha256()
    overhead = TAG if is_encrypted else 4
    if flags & _SALTED:
        overhead += SALT
    for index, start in enumerate(range(0, length, PIECE)):
        offset = file.tell()
        count = min(PIECE, length - start)
        piece = file.read(count + overhead)
        if len(piece) < count + overhead:
            raise Damage(path, offset, "the file ends within a piece")
        if is_encrypted:
            continue
        seeds = index.to_bytes(4, "little") + number.to_bytes(8, "little")
        if crc32c(seeds + piece[:count]) != int.from_bytes(piece[count:], "little"):
            raise Damage(path, offset, f"the checksum of piece {index} is wrong")
        content.update(piece[:count])
    if not is_encrypted and content.digest() != digest:
        raise Damage(path, HEADER, "the content is not what its name says")
