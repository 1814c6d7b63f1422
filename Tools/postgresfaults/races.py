"""Many writers on few keys at several servers, and names that are made and deleted."""

import threading
import time

from syncclient import wire
from syncclient.connection import Connection
from syncclient.faults import Fault

from . import Violation
from .device import Router
from .servers import COMPACTING

_WRITERS, _KEYS = 64, 40


class Doubling(Router):
    """Sends every other batch to two servers at a time."""

    spare = None

    def call(self, name, **fields):
        if name != "push" or self._rng.random() < 0.5:
            return super().call(name, **fields)
        answers = []
        other = self.spare = self.spare or self.twin()

        def send(router):
            try:
                answers.append(Router.call(router, name, **fields))
            except Fault as fault:
                answers.append(fault)

        second = threading.Thread(target=send, args=(other,))
        second.start()
        send(self)
        second.join()
        self.slowest = max(self.slowest, other.slowest)
        told = [a for a in answers if not isinstance(a, Fault)]
        if not told:
            raise answers[0]
        marks = {_mark(answer) for answer in told}
        if len(marks) > 1:
            raise Violation(f"one batch, two outcomes: {marks}")
        return told[0]


def _mark(answer):
    mark = answer.mark()
    verdicts = [(v.text("verdict"), v.text("position", absent="")) for v in mark.verdicts]
    return mark.number, mark.batch, str(verdicts)


# What servers are started with, and what PostgreSQL is.
_VARIANTS = {
    "plain": ([], "read committed"),
    "compacted": (COMPACTING, "read committed"),
    "without leases": ([*COMPACTING, "--lease-days", "0"], "read committed"),
    "repeatable read": ([], "repeatable read"),
    "serializable": (COMPACTING, "serializable"),
    "policies": (["--policy", "*=lastWriterWins"], "read committed"),
    "policies compacted": (["--policy", "*=lastWriterWins", *COMPACTING], "read committed"),
}


def races(trial):
    """64 writers on 40 keys at three servers: of each kind as many changes."""
    cluster = trial.cluster()
    for name, (options, isolation) in _VARIANTS.items():
        trial.stop_servers()
        cluster.configure(f"\ndefault_transaction_isolation = '{isolation}'\n")
        cluster.reload()
        trial.start_servers(3, cluster.url, *options)
        # Who may begin anew at any time keeps all others from coming to rest.
        writers = _WRITERS // 8 if name == "without leases" else _WRITERS
        trial.start_devices(writers, shared=_KEYS, router=Doubling, own=0, delay=0.5)
        end = time.monotonic() + 60
        while sum(len(d.ledger) for d in trial.devices) < trial.options.count:
            if time.monotonic() > end or trial.is_late:
                break
            time.sleep(0.1)
        trial.count(f"changes {name}", sum(len(d.ledger) for d in trial.devices))
        is_compacted = set(COMPACTING) <= set(options)
        if is_compacted:
            # What is written last is compacted, too.
            trial.rest()
            time.sleep(3)
        oracle = trial.judge(
            cluster, is_compacted=is_compacted, detects="--policy" not in options,
            may_begin_anew=name == "without leases")
        if is_compacted and oracle.rows.history_from == 0:
            raise Violation("no compaction has dropped anything")


def _hello(server, name, number):
    link = Connection(f"{server.address}/{name}", seconds=30, attempts=1)
    return link.call(
        "hello", replica=f"{number:032x}", cursor=wire.BEGINNING).hexadecimal("feed", 32)


def names(trial):
    """Makes one name at three servers at a time; deletes it behind them; makes it again."""
    cluster = trial.cluster()
    trial.start_servers(3, cluster.url)
    for number in range(trial.options.count):
        name, feeds = f"name{number % 2}", []

        def make(server):
            try:
                feeds.append(_hello(server, name, number + 1))
            except Fault as fault:
                feeds.append(str(fault))

        threads = [threading.Thread(target=make, args=(s,)) for s in trial.servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(set(feeds)) != 1:
            raise Violation(f"one name, several databases: {feeds}")
        _delete(cluster, name)
        for server in trial.servers:
            _await_other(server, name, feeds[0])
        _delete(cluster, name)
        trial.count("names")


def _delete(cluster, name):
    """What a program does that deletes a database beside running servers."""
    cluster.sql(
        "BEGIN; UPDATE tidemark.tm_db SET state=1 WHERE db="
        f"(SELECT db FROM tidemark.tm_name WHERE name='{name}');"
        f"DELETE FROM tidemark.tm_name WHERE name='{name}'; COMMIT;"
        "DELETE FROM tidemark.tm_db WHERE state=1")


def _await_other(server, name, feed, seconds=20):
    """A name is free at once: another database comes, and calls for it do not fail for long."""
    end, words = time.monotonic() + seconds, ""
    while time.monotonic() < end:
        try:
            if _hello(server, name, 99) != feed:
                return
            words = "it still answers for the old one"
        except Fault as fault:
            words = str(fault)
        time.sleep(0.2)
    raise Violation(f"{name} was deleted {seconds} s ago, and a server does not make it: {words}")
