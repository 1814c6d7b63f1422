"""Another primary, or an older copy, takes over: devices send again what it lacks."""

import os
import shutil
import signal
import time

from syncclient import wire
from syncclient.connection import Connection
from syncclient.faults import Fault

from . import Violation
from .cluster import free_port

# Ready again after a promotion.
_READY_SECONDS = 10
# How long a call may take at PostgreSQL.
_CALL_SECONDS = 10


def _address(*clusters):
    hosts = ",".join(cluster.home for cluster in clusters)
    ports = ",".join(str(cluster.port) for cluster in clusters)
    return (
        f"postgresql:///postgres?host={hosts}&port={ports}&user=tidemark"
        "&target_session_attrs=read-write")


def _pair(trial):
    """A primary and its standby."""
    primary, standby = trial.cluster("a"), trial.cluster("b", create=None)
    standby.follow(primary)
    standby.start()
    _await_streaming(primary)
    return primary, standby


def _await_streaming(primary, seconds=60):
    end = time.monotonic() + seconds
    lag = "SELECT 1 FROM pg_stat_replication WHERE state='streaming' AND replay_lsn>=sent_lsn"
    while not primary.sql(lag):
        if time.monotonic() > end:
            raise Violation("the standby does not stream")
        time.sleep(0.1)


def _await_answers(trial, since):
    """Each server answers in time once there is a primary."""
    for server in trial.servers:
        while True:
            try:
                Connection(f"{server.address}/{trial.database}", seconds=5, attempts=1).call(
                    "hello", replica="e" * 32, cursor=wire.BEGINNING)
                break
            except Fault as fault:
                if time.monotonic() > since + _READY_SECONDS:
                    raise Violation(f"not ready {_READY_SECONDS} s after a promotion: {fault}")
                time.sleep(0.1)
    took = round(time.monotonic() - since, 1)
    trial.counts["slowest ready s"] = max(trial.counts.get("slowest ready s", 0), took)


def _set_synchronous(primary, is_synchronous):
    primary.configure(f"\nsynchronous_standby_names = '{'*' if is_synchronous else ''}'\n")
    primary.reload()


def _check_requirement(trial, primary):
    """A server that requires a synchronous standby is ready only while there is one."""
    _set_synchronous(primary, True)
    server = trial.start_servers(1, primary.url, "--require-standby")[0]
    _set_synchronous(primary, False)
    end = time.monotonic() + 20
    while server.is_ready():
        if time.monotonic() > end:
            raise Violation("a server is ready without the standby that it requires")
        time.sleep(0.1)
    trial.count("not ready without a standby")


def failover(trial):
    """The standby takes over, with or without the end; the old primary becomes its standby."""
    primary, standby = _pair(trial)
    _check_requirement(trial, primary)
    for number, faults in enumerate(trial.faults(5)):
        is_synchronous = number % 3 == 2
        is_compacted = trial.new_fleet(_address(primary, standby), number)
        trial.start_devices()
        for _ in faults:
            _set_synchronous(primary, is_synchronous)
            time.sleep(trial.rng.uniform(0.5, 2))
            if not is_synchronous:
                standby.cut_off()
                time.sleep(trial.rng.uniform(1, 5))
            primary.kill()
            trial.count("synchronous failovers" if is_synchronous else "failovers")
            standby.configure("\nsynchronous_standby_names = ''\n")
            standby.promote()
            _await_answers(trial, time.monotonic())
            time.sleep(trial.rng.uniform(0, 1))
            primary, standby = standby, primary
            _take_back(trial, primary, standby)
        trial.judge(primary, is_lossy=not is_synchronous, is_compacted=is_compacted)


def hung(trial):
    """The primary answers nothing more, as a machine that is gone; the standby takes over."""
    primary, standby = _pair(trial)
    for _ in range(trial.options.count):
        if trial.is_late:
            break
        trial.new_fleet(_address(primary, standby), 0)
        trial.start_devices()
        time.sleep(1)
        standby.cut_off()
        time.sleep(1)
        primary.signal(signal.SIGSTOP)
        try:
            standby.promote()
            # Calls that were under way take their time first.
            _await_answers(trial, time.monotonic() + _CALL_SECONDS)
            time.sleep(1)
        finally:
            primary.signal(signal.SIGCONT)
        primary.kill()
        trial.count("hung primaries")
        primary, standby = standby, primary
        _take_back(trial, primary, standby)
        trial.judge(primary, is_lossy=True, seconds=40)


def _take_back(trial, primary, former):
    """The primary that was becomes the standby."""
    if trial.rng.random() < 0.7:
        # Its control file tells the new timeline only after a checkpoint.
        primary.sql("CHECKPOINT")
        former.rewind(primary)
    else:
        former.follow(primary)
    former.start()
    _await_streaming(primary)


def two_primaries(trial):
    """Half of the servers stay at the old primary for a while, and devices call all of them."""
    primary, standby = _pair(trial)
    for number in range(4):
        order = (primary, standby) if number < 2 else (standby, primary)
        trial.start_servers(1, _address(*order))
    for _ in range(trial.options.count):
        if trial.is_late:
            break
        stay, go = trial.servers[:2], trial.servers[2:]
        trial.start_devices(sticks=True)
        time.sleep(2)
        standby.cut_off()
        time.sleep(trial.rng.uniform(0, 1))
        standby.promote()
        for server in go:
            server.kill()
            server.start()
            server.await_ready()
        heads = [_head(cluster, trial.database) for cluster in (primary, standby)]
        time.sleep(5)
        grown = [
            _head(cluster, trial.database) - head
            for cluster, head in zip((primary, standby), heads)]
        if min(grown) <= 0:
            raise Violation(f"not both primaries took appends: {grown}")
        trial.count("appended to the old one", grown[0])
        primary.kill()
        _await_answers(trial, time.monotonic())
        time.sleep(1)
        trial.judge(standby, is_lossy=True)
        trial.count("splits")
        primary, standby = standby, primary
        _take_back(trial, primary, standby)
        # The addresses of those that stay have the primary first.
        trial.servers = go + stay


def _head(cluster, name):
    return int(cluster.sql(
        f"SELECT head FROM tidemark.tm_db JOIN tidemark.tm_name USING (db) WHERE name='{name}'"
    )[0][0])


def restore(trial):
    """An older copy of the data takes its place, as each way of keeping one makes it."""
    cluster = trial.cluster("a")
    ways = [_base_backup, _snapshot, _dump, _dump_in_place]
    for number in range(trial.options.count):
        if trial.is_late:
            break
        is_compacted = trial.new_fleet(cluster.url, number // len(ways))
        trial.start_devices()
        time.sleep(trial.rng.uniform(1, 2))
        way = ways[number % len(ways)]
        cluster = way(trial, cluster, number)
        time.sleep(trial.rng.uniform(0.5, 1.5))
        trial.judge(cluster, is_lossy=True, is_compacted=is_compacted)
        trial.count(way.__name__.strip("_").replace("_", " "))


def _successor(trial, cluster, number):
    """Another cluster at the same address."""
    other = trial.cluster(f"copy{number}", create=None)
    other.port = cluster.port
    return other


def _go_on(trial):
    """Time in which devices write what the copy lacks."""
    time.sleep(trial.rng.uniform(1, 3))


def _replace(trial, cluster, other):
    cluster.kill()
    # Nothing of the former one is needed any more.
    other.start()
    trial.clusters.remove(cluster)
    shutil.rmtree(cluster.data)
    return other


def _base_backup(trial, cluster, number):
    other = _successor(trial, cluster, number)
    cluster.run("pg_basebackup", "-D", other.data, "-X", "stream", "-c", "fast", "-d", cluster.url)
    _go_on(trial)
    return _replace(trial, cluster, other)


def _snapshot(trial, cluster, number):
    other = _successor(trial, cluster, number)
    cluster.kill()
    cluster.copy_to(other)
    cluster.start()
    _go_on(trial)
    return _replace(trial, cluster, other)


def _dump(trial, cluster, number):
    other = _successor(trial, cluster, number)
    path = _dumped(cluster, number)
    _go_on(trial)
    cluster.kill()
    other.create()
    # Nobody may find it while it has no tables.
    other.port, port = free_port(), other.port
    other.start()
    # A dump has no roles.
    other.load(path, before="CREATE ROLE tidemark_reader; CREATE ROLE tidemark_writer")
    other.stop()
    other.port = port
    other.start()
    trial.clusters.remove(cluster)
    shutil.rmtree(cluster.data)
    return other


def _dump_in_place(trial, cluster, number):
    path = _dumped(cluster, number)
    _go_on(trial)
    cluster.load(path, before="DROP SCHEMA tidemark CASCADE")
    return cluster


def _dumped(cluster, number):
    path = os.path.join(cluster.home, f"dump{number}.sql")
    cluster.run("pg_dump", "-n", "tidemark", "-f", path, "-d", cluster.url)
    return path
