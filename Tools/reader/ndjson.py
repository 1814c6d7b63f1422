"""Lines as `logtool export` writes them."""

import base64
import datetime
import json

from . import heads

# A text that is longer becomes base64 when that is shorter.
_LONG_TEXT = 1 << 20
_FIRST_SECOND = -62_167_219_200
_LAST_SECOND = 253_402_300_799
_escaped = json.JSONEncoder(ensure_ascii=False).encode


def _text(data):
    return _escaped(data.decode("utf-8", "replace"))


def _field(name, data):
    """A field as text, or as base64 when the bytes are no UTF-8."""
    try:
        text = _escaped(data.decode("utf-8"))
    except UnicodeDecodeError:
        text = None
    if text is not None and len(data) > _LONG_TEXT // 6:
        most = max(_LONG_TEXT, (len(data) + 2) // 3 * 4)
        if len(text.encode("utf-8")) - 2 > most:
            text = None
    if text is not None:
        return f'"{name}":{text}'
    return f'"{name}_base64":"{base64.b64encode(data).decode()}"'


def _time(seconds, nanoseconds):
    """RFC 3339 in UTC, with as many digits behind the second as are needed."""
    if seconds < _FIRST_SECOND:
        seconds, nanoseconds = _FIRST_SECOND, 0
    if seconds > _LAST_SECOND:
        seconds, nanoseconds = _LAST_SECOND, 999_999_999
    days, second = divmod(seconds, 86_400)
    if days < -719_162:
        # The year 0, which datetime does not know, is as long as the year 2000.
        date = datetime.date(2000, 1, 1) + datetime.timedelta(days + 719_528)
        text = f"0000-{date.month:02d}-{date.day:02d}"
    else:
        text = (datetime.date(1970, 1, 1) + datetime.timedelta(days)).isoformat()
    text += f"T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    if nanoseconds:
        text += f".{nanoseconds:09d}".rstrip("0")
    return text + "Z"


def _line(fields, attributes, labels):
    if attributes.hash:
        fields.append(_field("hash", attributes.hash))
    if labels:
        fields.append('"labels":[' + ",".join(map(_text, labels)) + "]")
    if attributes.time is not None:
        fields.append(f'"time":"{_time(*attributes.time)}"')
    if attributes.max_age is not None:
        fields.append(f'"max_age":{attributes.max_age}')
    if attributes.attachment is not None:
        digest, length = attributes.attachment
        fields.append(f'"attachment":"sha256:{digest.hex()}:{length}"')
    if attributes.is_cache:
        fields.append('"class":"cache"')
    return ("{" + ",".join(fields) + "}\n").encode("utf-8")


def state_line(key, value, attributes, labels):
    """A key that is there."""
    fields = ['"op":"put"', _field("key", key), _field("value", value)]
    return _line(fields, attributes, labels)


def history_line(entry, value, attributes, replica):
    """An entry of the log."""
    origin, sequence = attributes.origin or (replica, entry.sequence)
    operation = {heads.PUT: "put", heads.TOUCH: "touch"}.get(entry.kind, "delete")
    fields = [
        f'"seq":{entry.sequence}', f'"op_id":"{origin.hex()}.{sequence}"', f'"op":"{operation}"',
        _field("key", entry.key),
    ]
    is_put = entry.kind == heads.PUT
    if is_put:
        fields.append(_field("value", value))
    return _line(fields, attributes, entry.labels if is_put else [])
