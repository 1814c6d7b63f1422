"""Fields of messages as JSON, whose every length and type is hostile.

Bytes are kept as text in which what is not UTF-8 stands for itself (`surrogateescape`), as the
system's own names are in Python.
"""

import base64
import binascii
import json
import re

from .faults import BadAnswer

BEGINNING = "0000000000000000-0"
NO_BATCH = "0" * 16

KEY_BYTES_MAX = 65_535
LABEL_BYTES_MAX = 255
LABELS_MAX = 64
VALUE_BYTES_MAX = 64 << 20
ROWS_MAX = 65_536
EPOCHS_MAX = 4_096

_POSITION = re.compile(r"[0-9a-f]{16}-(0|[1-9][0-9]{0,19})", re.ASCII)
_OPERATION = re.compile(r"([0-9a-f]{32})\.(0|[1-9][0-9]{0,19})", re.ASCII)
ATTACHMENT = re.compile(r"sha256:([0-9a-f]{64}):(0|[1-9][0-9]{0,12})", re.ASCII)
_HEX = re.compile(r"[0-9a-f]*", re.ASCII)


def to_bytes(text):
    """The bytes that a text stands for."""
    return text.encode("utf-8", "surrogateescape")


def from_bytes(data):
    """The text that stands for bytes."""
    return data.decode("utf-8", "surrogateescape")


def is_utf8(text):
    """Whether a text stands for nothing but UTF-8."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _base64(text):
    return base64.b64encode(to_bytes(text)).decode("ascii")


def field(name, text):
    """A field with bytes: under its name as text, or else as base64."""
    return {name: text} if is_utf8(text) else {name + "_base64": _base64(text)}


def list_field(name, texts):
    """A list of bytes, in one field or in two; nothing for an empty one."""
    plain = [text for text in texts if is_utf8(text)]
    coded = [_base64(text) for text in texts if not is_utf8(text)]
    fields = {name: plain} if plain else {}
    return {**fields, name + "_base64": coded} if coded else fields


def varint(number):
    """A number as seven bits a byte, lowest first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def offset(position):
    """The offset of a position."""
    return int(position[17:])


def encode(message):
    """A message as the bytes of a body."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def decode(data):
    """The object in a body.

    - Raises: BadAnswer for everything else.
    """
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_object, parse_float=_refuse,
            parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"the answer is not JSON as it should be: {error}") from None
    return Fields(value, "the answer")


def _object(pairs):
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field comes twice")
    return fields


def _refuse(text):
    raise ValueError(f"{text[:32]} is not a whole number")


class Range:
    """The epochs that a feed lists, and how far it goes."""

    def __init__(self, fields):
        rows = fields.objects("epochs", EPOCHS_MAX)
        self.epochs = [(row.hexadecimal("epoch", 16), row.number("first")) for row in rows]
        self.head = fields.number("head")

    def contains(self, position):
        """Whether the feed gave a position out and still knows it."""
        if position == BEGINNING:
            return True
        at = offset(position)
        listed = [epoch for epoch, first in self.epochs if first <= at]
        return 0 < at <= self.head and bool(listed) and listed[-1] == position[:16]


class Mark:
    """The last batch that the server has of a replica, and what became of its changes."""

    def __init__(self, fields):
        self.number = fields.number("number")
        self.batch = fields.hexadecimal("batch", 16)
        self.verdicts = fields.objects("verdicts", ROWS_MAX)


class Fields:
    """Takes the fields of one object by name; unknown ones are passed over."""

    def __init__(self, value, where):
        if not isinstance(value, dict):
            raise BadAnswer(f"{where} is no object")
        self._values = value
        self._where = where

    def _bad(self, name, what):
        return BadAnswer(f"{self._where}: {name} {what}")

    def take(self, name, kind):
        """A field of a type; None where it is absent or null."""
        value = self._values.get(name)
        # A bool is an int to Python, and not to anybody else.
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise self._bad(name, "is of another type")
        return value

    def text(self, name, absent=None):
        value = self.take(name, str)
        if value is None:
            value = absent
        if value is None:
            raise self._bad(name, "is missing")
        return value

    def number(self, name, absent=None, below=1 << 64):
        value = self.take(name, int)
        if value is None:
            value = absent
        if value is None or not 0 <= value < below:
            raise self._bad(name, "is missing or out of bounds")
        return value

    def flag(self, name):
        value = self._values.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._bad(name, "is neither true nor false")
        return value is True

    def hexadecimal(self, name, digits, absent=None):
        value = self.text(name, absent)
        if len(value) != digits or not _HEX.fullmatch(value):
            raise self._bad(name, f"is not {digits} hexadecimal digits")
        return value

    def reach(self):
        """The token's reach, as the server tells it; empty where it does not."""
        return "" if self.take("reach", str) is None else self.hexadecimal("reach", 16)

    def position(self, name):
        value = self.text(name)
        if not _POSITION.fullmatch(value):
            raise self._bad(name, "is no position")
        return value

    def attachment(self):
        """The name of an attachment; None where there is none."""
        value = self.take("attachment", str)
        if value is not None and not ATTACHMENT.fullmatch(value):
            raise self._bad("attachment", "names no attachment")
        return value

    def operation(self, name):
        """A replica and a sequence."""
        found = _OPERATION.fullmatch(self.text(name))
        if not found:
            raise self._bad(name, "is no operation id")
        return found[1], int(found[2])

    def bytes(self, name, most):
        """A field with bytes, as text or as base64."""
        plain, coded = self.take(name, str), self.take(name + "_base64", str)
        if (plain is None) == (coded is None):
            raise self._bad(name, "is missing, or there twice")
        text = self._decoded(name, coded) if plain is None else plain
        if plain is not None and not is_utf8(plain):
            raise self._bad(name, "is not text")
        if len(to_bytes(text)) > most:
            raise self._bad(name, "is too long")
        return text

    def byte_list(self, name, rows, most):
        """A list of bytes in byte order, of both fields together."""
        plain, coded = self.take(name, list) or [], self.take(name + "_base64", list) or []
        if len(plain) + len(coded) > rows or not all(isinstance(e, str) for e in plain + coded):
            raise self._bad(name, "is too long, or not a list of strings")
        texts = plain + [self._decoded(name, element) for element in coded]
        if any(len(to_bytes(text)) > most for text in texts):
            raise self._bad(name, "has an element that is too long")
        return sorted(texts, key=to_bytes)

    def _decoded(self, name, coded):
        try:
            return from_bytes(base64.b64decode(coded, validate=True))
        except (binascii.Error, ValueError):
            raise self._bad(name, "is no base64") from None

    def objects(self, name, most):
        values = self.take(name, list)
        if values is None or len(values) > most:
            raise self._bad(name, "is missing, or too long")
        return [Fields(value, f"an element of {name}") for value in values]

    def has(self, name):
        return self._values.get(name) is not None

    def object(self, name):
        return Fields(self._values.get(name), f"{self._where}: {name}")

    def range(self):
        return Range(self.object("range"))

    def mark(self):
        return Mark(self.object("mark"))
