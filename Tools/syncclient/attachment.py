"""The content of attachments: files that go to the server before the change that names them."""

import hashlib
import os

from . import wire
from .faults import BadAnswer, Fault, Usage, one_line

_BYTES_MAX = 1 << 40
_PIECE_BYTES = 64 << 10
_STALLS_MAX = 3
_PART_BYTES = 8 * _PIECE_BYTES


class Refused(Fault):
    """The server will never take a content, or it is gone here."""


def of_file(path):
    """The name of a file's content."""
    digest, length = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
            length += len(piece)
    if length > _BYTES_MAX:
        raise Usage(f"{path} is larger than an attachment may be")
    return f"sha256:{digest.hexdigest()}:{length}"


def split(name):
    """The hash and the length in a name; None for what is none."""
    found = wire.ATTACHMENT.fullmatch(name)
    return (bytes.fromhex(found[1]), int(found[2])) if found and int(found[2]) <= _BYTES_MAX else None


def encoded(name):
    """A name as the head of a fingerprint has it."""
    digest, length = split(name)
    return digest + wire.varint(length)


def send(call, key, name, path):
    """Sends what the server lacks of a content.

    - Raises: Refused with the reason when it will never be there.
    """
    length = split(name)[1]
    fields = {**wire.field("key", key), "attachment": name}
    received, stalls = None, 0
    while True:
        part = b""
        if received is not None:
            part = _part(path, name, received, min(_PART_BYTES, length - received))
        answer = call(
            "attach", **fields, offset=received or 0,
            **wire.field("bytes", wire.from_bytes(part)))
        if answer.has("code"):
            words = answer.text("message", absent="")
            raise Refused(one_line(f"{answer.text('code')}: {words}"))
        now = answer.number("received", below=length + 1)
        if now == length:
            return
        # A server that has lost parts is given them again, but not for ever.
        stalls = stalls + 1 if part and now <= received else 0
        if stalls == _STALLS_MAX:
            raise BadAnswer("the server does not keep what it is sent")
        received = now


def _part(path, name, offset, count):
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            part = file.read(count)
    except OSError as error:
        raise Refused(f"its content is gone: {error}") from None
    if len(part) < count:
        raise Refused(f"{path} is another file than {name} by now")
    return part


def fetch(call, key, name, path):
    """Fetches a content into a file, going on from what an earlier call has left beside it."""
    digest, length = split(name)
    partial = path + ".part"
    with open(partial, "ab+") as file:
        received = file.tell()
        while received < length:
            answer = call(
                "fetch", **wire.field("key", key), attachment=name, offset=received,
                limit=_PART_BYTES)
            if not (answer.has("bytes") or answer.has("bytes_base64")):
                raise Refused("the server has another entry at the key, or lacks the content")
            part = wire.to_bytes(answer.bytes("bytes", _PART_BYTES))
            if not part or received + len(part) > length:
                raise BadAnswer("a part of the content is of another length")
            file.write(part)
            received += len(part)
        file.flush()
        os.fsync(file.fileno())
    if of_file(partial) != name:
        os.remove(partial)
        raise BadAnswer(f"the content is not what its hash {digest.hex()} says")
    os.replace(partial, path)
