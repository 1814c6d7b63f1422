"""Calls over HTTP: one message there, one back, within bounds."""

import http.client
import random
import time
import urllib.parse

from . import wire
from .faults import BadAnswer, NoPermission, StartAnew, Unavailable, Usage, Fault, one_line

_ANSWER_BYTES_MAX = 4 * (72 << 20)
_PIECE_BYTES = 1 << 16
_PAUSE_SECONDS_MAX = 60
_TRY_AGAIN = (401, 407, 408, 429, 502, 503, 504, 511)


class Refused(Fault):
    """The server cannot do what was asked for."""


class Connection:
    """Speaks with one database of a server."""

    def __init__(self, url, token="", seconds=30, attempts=4):
        """
        - Parameter seconds: for one call, at most.
        - Parameter attempts: how often a call is made whose outcome is unknown.
        """
        try:
            parts = urllib.parse.urlsplit(url)
            self._port = parts.port
        except ValueError as error:
            raise Usage(f"{one_line(url)}: {error}") from None
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        if (
            parts.scheme not in kinds
            or not parts.hostname
            or parts.query
            or parts.fragment
            or not parts.path.isascii()
        ):
            raise Usage(f"{one_line(url)} is no address like https://sync.example.org/notes")
        self._kind, self._host = kinds[parts.scheme], parts.hostname
        self._path = parts.path.rstrip("/") + "/v1/"
        self._token, self._seconds, self._attempts = token, seconds, attempts
        self._http = None

    def call(self, name, **fields):
        """Makes a call, again as long as nobody knows what became of it.

        It is the same request each time: the server knows a batch by its number and id.
        - Returns: the fields of the answer.
        - Raises: Unavailable after the last attempt.
        """
        body = wire.encode({"type": name, **fields})
        for attempt in range(self._attempts):
            try:
                return self._once(name, body)
            except Unavailable as error:
                self.close()
                asked = error.retry_after or 0
                # Clients that failed together come back apart.
                pause = asked + random.uniform(0, max(0.5 * 2**attempt, asked))
                if attempt + 1 == self._attempts or asked > _PAUSE_SECONDS_MAX:
                    raise
                time.sleep(pause)

    def close(self):
        if self._http:
            self._http.close()
        self._http = None

    def _once(self, name, body):
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        try:
            if not self._http:
                self._http = self._kind(self._host, self._port, timeout=self._seconds)
            self._http.request("POST", self._path + name, body, headers)
            answer = self._http.getresponse()
            data = self._read(answer)
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"no answer from {self._host}: {one_line(str(error))}") from None
        return _message(name, answer.status, answer.getheader("Content-Type", ""), data)

    def _read(self, answer):
        """The body, which is as long as the protocol allows and comes in time."""
        end = time.monotonic() + self._seconds
        pieces, size = [], 0
        # Not `read`, which goes on until a piece is whole, however slowly it comes.
        while piece := answer.read1(_PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > _ANSWER_BYTES_MAX:
                self.close()
                raise BadAnswer("the answer is longer than any message")
            if time.monotonic() > end:
                raise Unavailable("the answer takes too long")
        if answer.length:
            raise Unavailable("the answer ends too early")
        # Done with, as the connection has to be told after reading piece by piece.
        answer.close()
        return b"".join(pieces)


def _message(name, status, content_type, data):
    """The answer in a body, if it is one."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        # Something on the way answers instead: only the server itself refuses a token.
        if status in _TRY_AGAIN or status < 400:
            raise Unavailable(f"something else answers, with status {status}")
        raise Refused(f"something else answers, with status {status}")
    message = wire.decode(data)
    kind = message.text("type")
    if kind == "error":
        raise _fault(message)
    if status != 200 or kind != name + "_answer":
        raise BadAnswer(f"status {status} and a message of type {one_line(kind)}")
    return message


def _fault(message):
    """The meaning of a server's error here."""
    kind, words = message.text("kind"), one_line(message.text("message", absent=""))
    if kind in ("unavailable", "busy"):
        seconds = message.number("retry_after_seconds", absent=0, below=1 << 32)
        return Unavailable(f"the server is {kind}: {words}", seconds)
    if kind in ("unauthorized", "forbidden"):
        return NoPermission(f"the server refuses: {words}")
    if kind in ("cursor_gone", "lease_expired"):
        return StartAnew(f"{words}; use `restart`")
    return Refused(f"the server cannot do it ({one_line(kind)}): {words}")
