#!/usr/bin/env python3
"""A plain REST back end for RequestPeer: what a program's own server has to do, and no more.

PUT /items/KEY        body {"value_base64": ..., "labels": [...]}   header Idempotency-Key
DELETE /items/KEY                                                   header Idempotency-Key
GET /items/KEY        {"value_base64": ..., "labels": [...]}, or 404
GET /changes?since=T  {"changes": [...], "token": T, "more": bool}

POST /notes           201 {"id": 42}                                header Idempotency-Key
PUT /notes/42         404 where there is none                       header Idempotency-Key
DELETE /notes/42      404 where there is none                       header Idempotency-Key
GET /notes/42         as above
GET /notes?since=T    as /changes, with "id": 42 for "key"

Every answer repeats the request's header Request-Id: by that a client knows that it comes from here,
and not from a box on the way, such as a captive portal, a proxy or a cache.

Items have the keys that the clients give them: KEY is base64url without padding, since keys are
bytes. Notes get ids of the server's own, as in most REST interfaces: clients keep them as aliases
of their keys. An If-None-Match of "*" makes a PUT fail
with 409 where there is something already. Everything is one file of JSON lines, appended and
synced before an answer goes out: the idempotency keys with their answers among it, since a change
that comes again after a crash must be answered as before.

Usage: server.py FILE [PORT]     prints the port and serves on the loopback interface
"""
import base64
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

MOST_BYTES = 4 << 20
PAGE = 100


class Store:
    """Items, the order in which they changed, and the answers that were given."""

    def __init__(self, path):
        self.lock = threading.Lock()
        self.items = {}  # items/KEY or notes/ID -> (number of its last change, item or None, idempotency key)
        self.answers = {}  # idempotency key -> (status, body)
        self.count = 0
        self.notes = 0
        self.path = path
        try:
            lines = open(path, "rb").read().split(b"\n")
        except FileNotFoundError:
            lines = []
        good = 0
        for line in lines[:-1]:
            self.take(json.loads(line))
            good += len(line) + 1
        self.file = open(path, "ab")
        # A write that a crash cut off was never answered.
        self.file.truncate(good)

    def take(self, row):
        if "key" in row:
            self.count += 1
            self.notes += row["status"] == 201
            self.items[row["key"]] = (self.count, row["item"], row["id"])
        if row["id"]:
            self.answers[row["id"]] = (row["status"], row["body"])

    def change(self, key, item, identity, only_new=False):
        """Without a key a note is created."""
        with self.lock:
            if identity in self.answers:
                return self.answers[identity]
            row = {"id": identity, "status": 204, "body": None}
            held = self.items.get(key, (0, None, None))[1]
            is_gone = key is not None and key.startswith("notes/") and held is None
            if item is not None and len(item["value_base64"]) > 100_000:
                row.update(status=422, body={"code": "tooLong", "message": "75,000 bytes at most"})
            elif only_new and held is not None:
                row.update(status=409, body=held)
            elif is_gone:
                row.update(status=404)
            elif key is None:
                number = self.notes + 1
                row.update(key=f"notes/{number}", item=item, status=201, body={"id": number})
            else:
                row.update(key=key, item=item)
            self.file.write(json.dumps(row).encode() + b"\n")
            self.file.flush()
            os.fsync(self.file.fileno())
            self.take(row)
            return row["status"], row["body"]

    def changes(self, kind, since):
        with self.lock:
            rows = sorted(
                (row[0], key)
                for key, row in self.items.items()
                if row[0] > since and key.startswith(kind + "/")
            )
            page = rows[:PAGE]
            return {
                "changes": [
                    {
                        **self.name(key),
                        "item": self.items[key][1],
                        "idempotency_key": self.items[key][2],
                    }
                    for _, key in page
                ],
                "token": str(page[-1][0] if page else since),
                "more": len(rows) > len(page),
            }

    @staticmethod
    def name(key):
        kind, name = key.split("/")
        return {"key": name} if kind == "items" else {"id": int(name)}

    def item(self, key):
        with self.lock:
            return self.items.get(key, (0, None, None))[1]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = None

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Request-Id", self.headers.get("Request-Id") or "")
        if data:
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(data)

    def key(self):
        parts = urlsplit(self.path).path.split("/")
        if len(parts) != 3 or parts[1] not in ("items", "notes") or not parts[2]:
            return None
        return f"{parts[1]}/{parts[2]}"

    def body(self):
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= MOST_BYTES:
            raise ValueError("too long")
        return self.rfile.read(length)

    def change(self, item, creates=False):
        key, identity = self.key(), self.headers.get("Idempotency-Key")
        if not identity or (key is not None) == creates:
            return self.answer(400, {"code": "invalid", "message": "no key"})
        only_new = self.headers.get("If-None-Match") == "*"
        return self.answer(*self.store.change(key, item, identity, only_new))

    def do_POST(self):
        if urlsplit(self.path).path != "/notes":
            self.close_connection = True
            return self.answer(404)
        return self.do_PUT(creates=True)

    def do_PUT(self, creates=False):
        try:
            item = json.loads(self.body())
            base64.b64decode(item["value_base64"], validate=True)
            item = {"value_base64": item["value_base64"], "labels": list(item["labels"])}
        except (ValueError, KeyError, TypeError) as error:
            self.close_connection = True
            return self.answer(400, {"code": "invalid", "message": str(error)})
        return self.change(item, creates)

    def do_DELETE(self):
        return self.change(None)

    def do_GET(self):
        parts = urlsplit(self.path)
        if parts.path in ("/changes", "/notes"):
            since = parse_qs(parts.query).get("since", ["0"])[0]
            kind = "items" if parts.path == "/changes" else "notes"
            return self.answer(200, self.store.changes(kind, int(since) if since.isdigit() else 0))
        item = self.store.item(self.key()) if self.key() else None
        return self.answer(200, item) if item else self.answer(404)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    Handler.store = Store(sys.argv[1])
    port = int(sys.argv[2]) if len(sys.argv) == 3 else 0
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
