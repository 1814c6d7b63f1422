"""Connections to PostgreSQL that break, are slow, or carry no news; and how often they are used."""

import secrets
import statistics
import threading
import time

from syncclient import wire
from syncclient.connection import Connection

from . import Violation
from .proxy import CUTS, LISTENER, Proxy

# Heads are polled as often, and a poll takes a moment.
_NEWS_SECONDS = 5.5


def cuts(trial):
    """Cuts connections at chosen places, holds answers back, and drops notifications."""
    cluster = trial.cluster(listens=True)
    proxies = [Proxy(cluster.port) for _ in range(2)]
    trial.closers += [proxy.close for proxy in proxies]
    fleet = [trial.start_servers(1, proxy.url())[0] for proxy in proxies]
    _count_trips(trial, fleet[0], proxies[0])
    for faults in trial.faults(40):
        trial.start_devices()
        for _ in faults:
            _cut(trial, trial.rng.choice(proxies), trial.rng.choice(CUTS))
        for proxy in proxies:
            proxy.delay = 0.2
        time.sleep(3)
        for proxy in proxies:
            proxy.delay = 0
        trial.judge(cluster)
    for proxy in proxies:
        for place, count in proxy.cuts.items():
            trial.count("cut " + place, count)
    _news(trial, cluster, fleet, proxies[1])


def _cut(trial, proxy, place):
    time.sleep(trial.rng.uniform(0, 0.1))
    if place == LISTENER:
        return trial.count("listeners cut", proxy.cut_listeners())
    before = proxy.cuts.get(place, 0)
    proxy.cut(place)
    end = time.monotonic() + 20
    while proxy.cuts.get(place, 0) == before:
        if time.monotonic() > end:
            raise Violation(f"nothing passed in 20 s that could be cut {place}")
        time.sleep(0.005)


def _put(sequence, key, value):
    """A change upon nothing, made by hand."""
    return {
        "seq": sequence, "op": "put", "commit_time": f"{time.time_ns() // 1_000_000 << 16:016x}",
        **wire.field("key", key), **wire.field("value", value)}


class Pusher:
    """Pushes one change at a time, with one call each, and asks no server but one."""

    def __init__(self, server, database):
        self.link = Connection(f"{server.address}/{database}", seconds=60, attempts=1)
        self.replica, self._number, self._former = secrets.token_hex(16), 0, wire.NO_BATCH
        self._batch, self._changes = wire.NO_BATCH, []
        self.hello()

    def hello(self):
        self.link.call("hello", replica=self.replica, cursor=wire.BEGINNING)

    def push(self):
        """Puts a new key; or sends once more what was not acknowledged."""
        if not self._changes:
            self._number += 1
            self._former, self._batch = self._batch, f"{secrets.randbits(63) + 1:016x}"
            self._changes = [_put(self._number, secrets.token_hex(8), "v")]
        mark = self.link.call(
            "push", replica=self.replica, number=self._number, batch=self._batch,
            previous_batch=self._former, changes=self._changes).mark()
        verdict = mark.verdicts[0].text("verdict")
        if (mark.number, verdict) != (self._number, "applied"):
            raise Violation(f"a put of a new key is {verdict} in batch {mark.number}")
        self._changes = []

    def pull(self, after, **fields):
        return self.link.call("pull", replica=self.replica, after=after, **fields)


def _count_trips(trial, server, proxy):
    """Prints how often the server asks PostgreSQL for each call, without what it does beside."""
    trial.new_database()
    pusher = Pusher(server, trial.database)
    pusher.push()
    cursor = pusher.pull(wire.BEGINNING).position("cursor")
    # Whatever is prepared only once is prepared by now.
    calls = {
        "hello": pusher.hello,
        "push": pusher.push,
        "pull of one entry": lambda: pusher.pull(cursor),
        "pull of nothing": lambda: pusher.pull(pusher.pull(cursor).position("cursor")),
        "waiting pull": lambda: pusher.pull(
            pusher.pull(cursor).position("cursor"), wait_milliseconds=1_000),
    }
    shown = []
    for name, call in calls.items():
        call()
        before = dict(proxy.trips)
        for _ in range(5):
            call()
        after = {
            text: count - before.get(text, 0) for text, count in proxy.trips.items()
            if not any(beside in text for beside in ("pg_notify", "head # epoch", "tm_inbox"))}
        shown.append(f"{name} {sum(after.values()) / 5:g}")
    print(f"  round trips, of which the last two have a pull before them: {', '.join(shown)}",
          flush=True)


def _news(trial, cluster, fleet, proxy):
    """A push at one server wakes who waits at another, with and without notifications."""
    for swallows in (False, True):
        trial.new_database()
        pusher, reader = (Pusher(server, trial.database) for server in fleet)
        pusher.push()
        cursor, times = reader.pull(wire.BEGINNING).position("cursor"), []
        proxy.swallows, before = swallows, proxy.swallowed
        for number in range(8):
            if number % 4 == 3:
                proxy.cut_listeners()
            waiting, start = [], time.monotonic()
            wait = threading.Thread(
                target=lambda: waiting.append(reader.pull(cursor, wait_milliseconds=20_000)))
            wait.start()
            time.sleep(trial.rng.uniform(0.1, 0.5))
            if number % 4 == 1:
                cluster.kill()
                cluster.start()
            pusher.push()
            start = time.monotonic()
            wait.join(30)
            times.append(time.monotonic() - start)
            if not waiting or not waiting[0].objects("entries", 10):
                raise Violation(f"who waits was not woken in {times[-1]:.1f} s")
            cursor = waiting[0].position("cursor")
        proxy.swallows = False
        name = "without notifications" if swallows else "with notifications"
        print(f"  woken {name}: median {statistics.median(times) * 1e3:.0f} ms, most"
              f" {max(times) * 1e3:.0f} ms", flush=True)
        if max(times) > _NEWS_SECONDS:
            raise Violation(f"who waits was woken after {max(times):.1f} s {name}")
        if swallows and proxy.swallowed == before:
            raise Violation("no notification was dropped")
