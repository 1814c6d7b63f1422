"""A proxy before PostgreSQL that understands enough of its protocol to cut at chosen places."""

import socket
import threading
import time

# What is cut: COMMIT before it arrives, its answer, a row or a statement in its middle; and the
# connection that listens.
BEFORE_COMMIT, AFTER_COMMIT = "before COMMIT", "after COMMIT"
IN_ROW, IN_STATEMENT, LISTENER = "in a row", "in a statement", "listener"
CUTS = (BEFORE_COMMIT, AFTER_COMMIT, IN_ROW, IN_STATEMENT, LISTENER)

_NEGOTIATIONS = (80877103, 80877104)
_CANCEL = 80877102


class Proxy:
    """Listens on loopback; every connection to it is one to PostgreSQL."""

    def __init__(self, port):
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._plan, self._links = [], set()
        # Whether notifications are dropped, and how long answers are held back.
        self.swallows, self.delay = False, 0
        # Of each kind of statement that a burst begins with: bursts that were answered.
        self.trips, self.swallowed, self.cuts = {}, 0, {}
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self):
        return (
            f"postgresql://tidemark@127.0.0.1:{self.port}/postgres"
            "?sslmode=disable&gssencmode=disable")

    def cut(self, place):
        """Plans a cut at the next chance."""
        with self._lock:
            self._plan.append(place)

    def takes(self, place):
        """Whether a cut at a place is planned, which is made now then."""
        with self._lock:
            if place not in self._plan:
                return False
            self._plan.remove(place)
            self.cuts[place] = self.cuts.get(place, 0) + 1
            return True

    def cut_listeners(self):
        """Cuts the connections that listen; returns how many there were."""
        with self._lock:
            listeners = [link for link in self._links if link.listens]
        for link in listeners:
            link.close()
        return len(listeners)

    def note_trip(self, kind):
        with self._lock:
            self.trips[kind] = self.trips.get(kind, 0) + 1

    def close(self):
        self._listener.close()
        with self._lock:
            links = list(self._links)
        for link in links:
            link.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                if self._listener.fileno() < 0:
                    return
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = _Link(self, client, server)
            with self._lock:
                self._links = {other for other in self._links if not other.is_closed} | {link}
            link.start()


class _Link:
    """Both directions of one connection."""

    def __init__(self, proxy, client, server):
        self._proxy, self._client, self._server = proxy, client, server
        self._texts, self._burst = {}, None
        self.listens, self.is_closed = False, False

    def start(self):
        for pump in (self._to_server, self._to_client):
            threading.Thread(target=self._run, args=(pump,), daemon=True).start()

    def close(self):
        self.is_closed = True
        for end in (self._client, self._server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def _run(self, pump):
        try:
            pump()
        except OSError:
            pass
        self.close()

    def _to_server(self):
        source = self._client.makefile("rb")
        while True:
            length = source.read(4)
            body = source.read(int.from_bytes(length, "big") - 4)
            code = int.from_bytes(body[:4], "big")
            self._server.sendall(length + body)
            if code == _CANCEL:
                return
            if code not in _NEGOTIATIONS:
                break
        for message in _messages(source):
            text = self._statement(message)
            if text == "COMMIT" and self._proxy.takes(BEFORE_COMMIT):
                # What came before it arrives, and runs.
                time.sleep(0.01)
                return
            if text and len(message) > 300 and self._proxy.takes(IN_STATEMENT):
                self._server.sendall(message[: len(message) // 2])
                return
            self._server.sendall(message)

    def _statement(self, message):
        """The text of the statement that a message binds; None for other messages."""
        kind, body = message[:1], message[5:]
        if kind == b"P":
            name, text = body.split(b"\0")[:2]
            self._texts[name] = text.decode()
            if text.startswith(b"LISTEN"):
                self.listens = True
        if kind != b"B":
            return None
        text = self._texts.get(body.split(b"\0")[1], "")
        if self._burst is None:
            self._burst = text
        return text

    def _to_client(self):
        source = self._server.makefile("rb")
        for message in _messages(source):
            kind = message[:1]
            if self._burst is not None:
                self._proxy.note_trip(self._burst)
                self._burst = None
                if self._proxy.delay:
                    time.sleep(self._proxy.delay)
            if kind == b"A" and self._proxy.swallows:
                self._proxy.swallowed += 1
                continue
            if kind == b"C" and message[5:-1] == b"COMMIT" and self._proxy.takes(AFTER_COMMIT):
                return
            if kind == b"D" and len(message) > 40 and self._proxy.takes(IN_ROW):
                self._client.sendall(message[: len(message) // 2])
                return
            self._client.sendall(message)


def _messages(source):
    """The messages of a stream, each with its type and length."""
    while len(head := source.read(5)) == 5:
        body = source.read(int.from_bytes(head[1:], "big") - 4)
        yield head + body
