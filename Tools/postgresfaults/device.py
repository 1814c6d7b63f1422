"""Devices: clients that write all the time, and remember what was acknowledged."""

import contextlib
import os
import random
import secrets
import threading
import time

from syncclient import attachment, wire
from syncclient.connection import Connection
from syncclient.faults import Fault, StartAnew, Unavailable
from syncclient.session import Session
from syncclient.state import State

from . import Violation


class Router:
    """Sends each call to any of some servers, and again as long as its outcome is unknown."""

    def __init__(self, addresses, name, rng, patience=60):
        self._rng, self.patience = rng, patience
        self.use(addresses, name)
        # How long each answered call took, by its kind, and what came instead of answers.
        self.times, self.slowest, self.refused = {}, 0, 0
        self.gives_up = threading.Event()

    def use(self, addresses, name):
        """Speaks with these servers from now on."""
        self._only = None
        self._addresses, self._name = list(addresses), name
        self._links = [
            Connection(f"{address}/{name}", seconds=30, attempts=1) for address in addresses]

    @contextlib.contextmanager
    def one_server(self):
        """Makes calls that belong together at one server: others may have another primary."""
        before = self._only
        self._only = before or self._rng.choice(self._links)
        try:
            yield
        finally:
            self._only = before

    def twin(self):
        """Another one for the same servers, over connections of its own."""
        twin = Router(self._addresses, self._name, random.Random(self._rng.random()), self.patience)
        twin.gives_up = self.gives_up
        return twin

    def call(self, name, **fields):
        end = time.monotonic() + self.patience
        while True:
            start = time.monotonic()
            try:
                answer = (self._only or self._rng.choice(self._links)).call(name, **fields)
                self.times.setdefault(name, []).append(time.monotonic() - start)
                return answer
            except Unavailable:
                self.refused += 1
                if time.monotonic() > end or self.gives_up.is_set():
                    raise
                time.sleep(self._rng.uniform(0, 0.2))
            finally:
                if not fields.get("wait_milliseconds"):
                    self.slowest = max(self.slowest, time.monotonic() - start)


class Memory(State):
    """A state that lives as long as the program: no device is killed here."""

    # Where the contents of attachments are, by their names: any device can send them again.
    files = {}

    def __init__(self):
        fields = {name: kind() for name, kind in self._FIELDS.items()}
        super().__init__("", {**fields, "batch": wire.NO_BATCH, "cursor": wire.BEGINNING})
        self.begin_anew(secrets.token_hex(16))

    def save(self):
        pass

    def edit(self, key, value, labels, name=None, file=None):
        super().edit(key, value, labels, name, file or self.files.get(name))


class _Session(Session):
    """Notes each change that was applied, with the position that the server said, and what each
    key was last acknowledged to hold.
    """

    def __init__(self, state, router, ledger, last):
        super().__init__(state, router)
        self._ledger, self._last = ledger, last

    def _take(self, change, verdict):
        name = verdict.text("verdict")
        if name in ("applied", "duplicate"):
            # A delete of what a restored copy never had is met, and makes no entry.
            self._last[change["key"]] = change.get("value")
        if name == "applied":
            position = verdict.position("position")
            row = (change["key"], change.get("value"), self._state.replica, change["seq"])
            base = wire.offset(change["base"]) if change["base"] else 0
            self._ledger.append((position, row, base))
        return super()._take(change, verdict)


class Device(threading.Thread):
    """Writes keys of its own, which no other device writes, and some that all do."""

    def __init__(self, number, router, seed, shared, directory, own=8, delay=0.02, sticks=False):
        """
        - Parameter sticks: whether the calls of a step all go to one server.
        """
        super().__init__(daemon=True)
        self.sticks = sticks
        self.number, self.router, self.delay, self._directory = number, router, delay, directory
        self.rng = random.Random(f"{seed}/{number}")
        # Long ones are told apart by their hash.
        keys = [f"{number}/{index}" for index in range(own)] + [f"{number}/" + "é" * 400]
        self.own = keys if own else []
        self.shared = shared
        self.state, self.ledger, self.last = Memory(), [], {}
        self.session = _Session(self.state, router, self.ledger, self.last)
        self.restarts, self.written, self.fault = 0, 0, None
        self.ends = threading.Event()

    def run(self):
        try:
            while not self.ends.is_set():
                with self.router.one_server() if self.sticks else contextlib.nullcontext():
                    self.step()
                time.sleep(self.rng.uniform(0, self.delay))
        except (Fault, Violation) as fault:
            self.fault = fault
        except Exception as fault:  # The campaign tells it, and not a trace in between.
            self.fault = Violation(f"device {self.number}: {fault!r}")

    def step(self):
        for _ in range(self.rng.choice((1, 1, 1, 2, 5))):
            is_own = not self.shared or self.own and self.rng.random() < 0.6
            self.edit(self.rng.choice(self.own if is_own else self.shared))
        try:
            self.send()
            if self.rng.random() < 0.3:
                self.guarded(self.session.pull)
            if self.rng.random() < 0.1:
                self._ask_beside()
        except Unavailable:
            # What is under way stays so, and goes out with the same number and id.
            pass

    def _ask_beside(self):
        """Asks what servers remember: sums, and that there is nothing new for who waits."""
        replica, cursor = self.state.replica, self.state.cursor
        self.router.call("digest", replica=replica, paths=[""])
        try:
            self.router.call("pull", replica=replica, after=cursor, wait_milliseconds=300)
        except StartAnew:
            # The next hello says it again.
            pass

    def edit(self, key):
        if self.state.held(key) and self.rng.random() < 0.2:
            return self.state.edit(key, None, None)
        self.written += 1
        size = self.rng.choice((0, 10, 100, 3_000)) if self.rng.random() < 0.3 else 5
        value = f"{self.number}.{self.written} " + f"{self.rng.random()}"[2:] * (size // 10 + 1)
        labels = sorted(self.rng.sample(("a", "b", "c"), self.rng.randrange(3)))
        self.state.edit(key, value, labels, self._file() if self.rng.random() < 0.05 else None)

    def _file(self):
        """The name of a new content, of one part or of several."""
        path = os.path.join(self._directory, f"{self.number}-{self.written}")
        with open(path, "wb") as file:
            file.write(self.rng.randbytes(self.rng.choice((0, 1, 40_000, 300_000, 700_000))))
        name = attachment.of_file(path)
        self.state.files[name] = path
        return name

    def send(self):
        """Sends what is pending, and decides what is in conflict."""
        self.guarded(self.session.push)
        for key, change in list(self.state.pending.items()):
            if "waits" in change:
                # Others' keys are sent by this device only where the server has lost them.
                is_mine = key in self.own or key in self.shared and self.rng.random() < 0.5
                self.state.decide(key, is_mine)

    def guarded(self, call):
        """Makes a call; begins anew where the server does not know what this device does."""
        try:
            return call()
        except StartAnew:
            self.restarts += 1
            with self.router.one_server():
                self.session.restart()
            return None

    def settle(self, seconds=90):
        """Sends everything and reads everything.

        - Raises: Violation when that takes longer.
        """
        end = time.monotonic() + seconds
        while self.state.in_flight or self.state.pending or not self._has_read():
            if time.monotonic() > end:
                raise Violation(f"device {self.number} does not come to rest in {seconds} s")
            try:
                self.send()
            except Unavailable:
                time.sleep(0.1)

    def _has_read(self):
        before = self.restarts
        try:
            self.guarded(self.session.pull)
        except Unavailable:
            return False
        return self.restarts == before and not self.state.pending

    def contents(self):
        """What this device knows that the server has: value, labels, attachment and position."""
        return {
            key: (
                held["value"], tuple(held["labels"]), held.get("attachment"), held["position"])
            for key, held in self.state.remote.items() if "value" in held}

    def last_of_own(self):
        """The last acknowledged value of each key of its own; None for a delete."""
        return {key: value for key, value in self.last.items() if key in self.own}
