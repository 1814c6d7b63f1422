"""The client's memory: one JSON file, written as a whole before anything is sent."""

import contextlib
import fcntl
import json
import os
import secrets
import time

from .faults import DamagedState, InUse, NoState, Usage
from .wire import BEGINNING, NO_BATCH, offset

CONFLICT = "the server has something else"
_IN_FLIGHT = "in flight"

_FORMAT = 1
_COUNTER_BITS = 16
_AHEAD_MILLISECONDS_MAX = 60_000


class State:
    """Everything that must outlive the process.

    - `url`, `feed`: the database, and the id that it had at the first hello.
    - `push_only`: whether it only sends.
    - `reach`: what the server said then of how far the token reaches; empty when it did not.
    - `replica`: who this client is.
    - `sequence`, `commit_time`: the last ones that were given to a change.
    - `number`, `batch`: the last batch that has its verdicts.
    - `in_flight`: the batch that was sent, or is to be sent, and has none: number, batch, changes.
    - `cursor`: everything up to here was pulled.
    - `remote`: what the server has, by key: position, and value and labels unless `deleted`.
    - `pending`: changes that are not in a batch, by key. One that the server has not taken has
      `waits`, which says why, and is not sent until somebody decides.
    """

    _FIELDS = {
        "url": str, "feed": str, "replica": str, "sequence": int, "commit_time": int,
        "number": int, "batch": str, "in_flight": dict, "cursor": str, "remote": dict,
        "pending": dict, "reach": str, "push_only": bool,
    }

    def __init__(self, path, values):
        self._path = path
        for name in self._FIELDS:
            setattr(self, name, values[name])

    @classmethod
    def create(cls, path, url, push_only=False):
        """A new state file, for a client that holds nothing."""
        if os.path.exists(path):
            raise Usage(f"{path} is there already")
        state = cls(path, {
            "url": url, "feed": "", "replica": "", "sequence": 0, "commit_time": 0, "number": 0,
            "batch": NO_BATCH, "in_flight": {}, "cursor": BEGINNING, "remote": {}, "pending": {},
            "reach": "", "push_only": push_only})
        state.begin_anew(secrets.token_hex(16))
        state.save()
        return state

    @classmethod
    def load(cls, path):
        try:
            with open(path, encoding="utf-8") as file:
                values = json.load(file)
        except FileNotFoundError:
            raise NoState(f"there is no {path}; make one with `init URL`") from None
        except (ValueError, RecursionError) as error:
            raise DamagedState(f"{path}: {error}") from None
        if not isinstance(values, dict) or values.get("format") != _FORMAT:
            raise DamagedState(f"{path} is no state file of this client")
        for name, kind in cls._FIELDS.items():
            if not isinstance(values.get(name), kind):
                raise DamagedState(f"{path}: {name} is missing, or of another type")
        return cls(path, values)

    def save(self):
        """Writes everything, durably and at once: a crash leaves the old file or the new one."""
        values = {"format": _FORMAT, **{name: getattr(self, name) for name in self._FIELDS}}
        temporary = self._path + ".tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(values, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path)
        directory = os.open(os.path.dirname(self._path) or ".", os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    # Changes

    def edit(self, key, value, labels, attachment=None, file=None):
        """Notes a put, or with None for a value a delete; not saved yet.

        - Parameter file: where the attachment's content is.
        """
        older = self.pending.get(key)
        change = {"seq": self._next_sequence(), "commit_time": self._next_commit_time()}
        if value is None:
            change["op"] = "delete"
        else:
            change.update(op="put", value=value, labels=labels)
            if attachment:
                change.update(attachment=attachment, file=file)
        if older and older.get("waits") != CONFLICT:
            # The new change takes its place, upon what the old one stood upon.
            change["base"] = older["base"]
        else:
            # A user who changes a key in conflict has seen what the server has.
            change["base"] = self._seen(key)
        self.pending[key] = change

    def decide(self, key, mine):
        """Ends the waiting of a change: it is sent upon what the server has, or dropped."""
        change = self.pending.get(key)
        if not change or "waits" not in change:
            raise Usage("there is nothing to decide on this key")
        if not mine:
            del self.pending[key]
        else:
            self.edit(
                key, change.get("value"), change.get("labels"), change.get("attachment"),
                change.get("file"))

    def _seen(self, key):
        """The base of a change that is made now; None for nothing."""
        if self.change_in_flight(key):
            # Its verdict will say; until then no other batch is formed.
            return _IN_FLIGHT
        found = self.remote.get(key)
        return found["position"] if found and not found.get("deleted") else None

    def change_in_flight(self, key):
        changes = self.in_flight.get("changes", [])
        return next((change for change in changes if change["key"] == key), None)

    def local(self, key):
        """The change that this client shows at a key; None where it shows the server's state."""
        return self.pending.get(key) or self.change_in_flight(key)

    def keys(self):
        """All keys that hold something here, in order."""
        keys = {key for key, held in self.remote.items() if not held.get("deleted")}
        keys |= set(self.pending) | {c["key"] for c in self.in_flight.get("changes", [])}
        return sorted(key for key in keys if self.held(key))

    def held(self, key):
        """The content of a key here: its value and labels; None for nothing."""
        found = self.local(key) or self.remote.get(key)
        return None if not found or "value" not in found else found

    def _next_sequence(self):
        self.sequence += 1
        return self.sequence

    def _next_commit_time(self):
        now = time.time_ns() // 1_000_000 << _COUNTER_BITS
        self.commit_time = max(self.commit_time + 1, now)
        return f"{self.commit_time:016x}"

    def see_commit_time(self, commit_time):
        """Takes note of somebody else's commit: what is committed here from now on is later."""
        limit = time.time_ns() // 1_000_000 + _AHEAD_MILLISECONDS_MAX
        if commit_time >> _COUNTER_BITS <= limit:
            self.commit_time = max(self.commit_time, commit_time)

    # The server's contents

    def know(self, key, position, value, labels, attachment=None):
        """Notes what the server has at a key, unless something later is known; None: deleted."""
        known = self.remote.get(key)
        if position == BEGINNING:
            self.remote.pop(key, None)
            return
        if known and offset(known["position"]) >= offset(position):
            return
        if value is None:
            self.remote[key] = {"position": position, "deleted": True}
        else:
            self.remote[key] = {"position": position, "value": value, "labels": labels}
            if attachment:
                self.remote[key]["attachment"] = attachment

    def forget_deletes(self):
        """Drops what only said that nothing earlier counts, once the cursor is beyond it."""
        through = offset(self.cursor)
        self.remote = {
            key: held for key, held in self.remote.items()
            if not held.get("deleted") or offset(held["position"]) > through}

    def put_back(self, change, **more):
        """Makes a change of a batch pending again, unless a newer one of its key is."""
        older = {name: value for name, value in change.items() if name != "key"}
        self.pending.setdefault(change["key"], {**older, **more})
        self.set_base(change["key"], change["base"])

    def set_base(self, key, base):
        """Says what a change was made upon that followed one in flight."""
        change = self.pending.get(key)
        if change and change["base"] == _IN_FLIGHT:
            change["base"] = base

    def begin_anew(self, replica, is_kept=lambda position: False):
        """Becomes another replica that has pulled nothing; no change is lost.

        - Parameter is_kept: whether the server has kept what stood at a position. What it has
          not is put once more.
        """
        for change in self.in_flight.get("changes", []):
            self.put_back(change)
        for change in self.pending.values():
            if change["base"] and not is_kept(change["base"]):
                change["base"] = None
        former, self.remote, self.in_flight = self.remote, {}, {}
        for key, held in former.items():
            if key not in self.pending and "value" in held and not is_kept(held["position"]):
                self.edit(key, held["value"], held["labels"], held.get("attachment"))
        self.replica, self.feed, self.reach = replica, "", ""
        self.number, self.batch, self.cursor = 0, NO_BATCH, BEGINNING


@contextlib.contextmanager
def locked(path):
    """Keeps other processes away: two of them would give out the same numbers."""
    with open(path + ".lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(f"another process works with {path}") from None
        yield
