"""Locks that others hold, and disks that are full."""

import os
import statistics
import threading
import time

from syncclient import wire
from syncclient.faults import Fault, Unavailable

from . import Violation
from .connections import Pusher
from .device import Device
from .oracle import Oracle
from .trial import mount

_LOCK_SECONDS = 30
# The time of a call at PostgreSQL, the last wait for a lock that begins within it, and some more.
_DEADLINE_SECONDS = 10 + 3 + 2


def locks(trial):
    """A foreign session holds a database's row; others lock rows in another order."""
    cluster = trial.cluster()
    fleet = trial.start_servers(2, cluster.url)
    for number in range(trial.options.count):
        if trial.is_late:
            break
        _hold_row(trial, cluster, fleet, number)
        _other_order(trial, cluster)


def _hold_row(trial, cluster, fleet, number):
    """Other databases are as fast as before, and nobody waits beyond the deadline."""
    free = [Pusher(fleet[index % 2], f"free{number}-{index}") for index in range(4)]
    stalled = [Pusher(fleet[index % 2], f"stalled{number}") for index in range(24)]
    for pusher in [*free, *stalled]:
        pusher.push()
    before = _measure(free, 3)
    session = cluster.session()
    session.stdin.write(
        "BEGIN; SELECT 1 FROM tidemark.tm_db JOIN tidemark.tm_name USING (db)"
        f" WHERE name='stalled{number}' FOR UPDATE OF tm_db;\n")
    session.stdin.flush()
    session.stdout.readline()
    waits, ends = [], time.monotonic() + _LOCK_SECONDS

    def push(pusher):
        while time.monotonic() < ends:
            start = time.monotonic()
            try:
                pusher.push()
            except Fault:
                pass
            waits.append(time.monotonic() - start)
            time.sleep(0.2)

    threads = [threading.Thread(target=push, args=(p,)) for p in stalled]
    for thread in threads:
        thread.start()
    during = _measure(free, _LOCK_SECONDS)
    session.stdin.close()
    session.wait()
    for thread in threads:
        thread.join()
    for pusher in stalled:
        pusher.push()
    oracle = Oracle(cluster, f"stalled{number}")
    oracle.check_tables()
    oracle.verdict()
    print(f"  pushes elsewhere: median {before * 1e3:.1f} ms before, {during * 1e3:.1f} ms beside a"
          f" lock of {_LOCK_SECONDS} s; who waited for it waited {max(waits):.1f} s at most",
          flush=True)
    if during > 2 * before + 0.002:
        raise Violation("pushes elsewhere are slower than twice")
    if max(waits) > _DEADLINE_SECONDS:
        raise Violation(f"a call took {max(waits):.1f} s")
    trial.count("pushes beside a lock", len(waits))


def _measure(pushers, seconds):
    """The median time of a push."""
    times, ends = [], time.monotonic() + seconds
    while time.monotonic() < ends:
        for pusher in pushers:
            start = time.monotonic()
            pusher.push()
            times.append(time.monotonic() - start)
        time.sleep(0.02)
    return statistics.median(times)


def _other_order(trial, cluster):
    """Foreign transactions that take marks and keys before the database's row."""
    trial.start_devices()
    for _ in range(10):
        time.sleep(trial.rng.uniform(0, 0.3))
        try:
            cluster.sql(
                "BEGIN; SELECT count(*) FROM (SELECT 1 FROM tidemark.tm_mark FOR UPDATE) m;"
                " SELECT count(*) FROM (SELECT 1 FROM tidemark.tm_key FOR UPDATE) k;"
                " SELECT pg_sleep(0.2);"
                " SELECT count(*) FROM (SELECT 1 FROM tidemark.tm_db FOR UPDATE) d; COMMIT")
            trial.count("orders that passed")
        except Violation:
            trial.count("deadlocks told to the other")
    found = cluster.sql("SELECT deadlocks FROM pg_stat_database WHERE datname='postgres'")
    trial.counts["deadlocks"] = int(found[0][0])
    trial.judge(cluster)


def disk(trial):
    """The data's disk is full, then the log's; all goes on when there is room."""
    _full_data(trial)
    _full_log(trial)


def _full_data(trial):
    place = mount(trial, "data", 128)
    cluster = trial.cluster("data/pg", create=("--waldir", os.path.join(trial.directory, "wal")))
    trial.start_servers(2, cluster.url)
    for _ in range(trial.options.count):
        if trial.is_late:
            break
        with _FullDisk(trial, place) as filler:
            refused = filler.fill()
            reader = trial.router("reader")
            reader.patience = 0
            page = reader.call("pull", replica="d" * 32, after=wire.BEGINNING)
            if not page.objects("entries", 4_096):
                raise Violation("a pull finds nothing while the disk is full")
        print(f"  the data's disk is full: {refused}", flush=True)
        trial.count("full data disks")
        trial.judge(cluster)
        _make_room(trial, cluster)
    trial.stop_servers()
    cluster.stop("immediate")


def _full_log(trial):
    place = mount(trial, "log", 160)
    cluster = trial.cluster("onlog", create=("--waldir", os.path.join(place, "wal")))
    trial.start_servers(2, cluster.url)
    for _ in range(trial.options.count):
        if trial.is_late:
            break
        with _FullDisk(trial, place) as filler:
            refused = filler.fill()
        print(f"  the log's disk is full: {refused}", flush=True)
        trial.count("full log disks")
        # PostgreSQL ends when it cannot write its log, and may not have come back.
        if cluster.run("pg_ctl", "-D", cluster.data, "status", check=False):
            trial.count("restarts by hand")
            cluster.start()
        trial.judge(cluster)
        _make_room(trial, cluster)


def _make_room(trial, cluster):
    cluster.sql(f"DELETE FROM tidemark.tm_name WHERE name='{trial.database}'")
    for table in ("entry", "key", "mark", "db"):
        cluster.sql(f"TRUNCATE tidemark.tm_{table}")
    cluster.sql("CHECKPOINT")


class _FullDisk:
    """Takes all room of a disk while devices write, and gives it back."""

    def __init__(self, trial, place):
        self._trial, self._path = trial, os.path.join(place, "ballast")

    def __enter__(self):
        trial = self._trial
        trial.start_devices(4)
        router = trial.router("filler")
        router.patience = 0
        self.device = Device(99, router, trial.options.seed, [], trial.files())
        trial.devices.append(self.device)
        time.sleep(1)
        with open(self._path, "wb", buffering=0) as file:
            try:
                while file.write(b"\0" * 65_536) == 65_536:
                    pass
            except OSError:
                pass
        return self

    def fill(self):
        """Pushes large values until there is no room.

        - Returns: the refusal, which has to be one after which devices try again.
        """
        for number in range(2_000):
            device = self.device
            device.state.edit(device.own[0], f"{number} " + os.urandom(30_000).hex(), [])
            try:
                device.send()
            except Unavailable as fault:
                return str(fault)
        raise Violation("the disk does not become full")

    def __exit__(self, kind, fault, trace):
        time.sleep(1)
        os.remove(self._path)
        self.device.router.patience = 60
        self.device.start()
