"""Shows that the oracle can fail: each planted fault has to be noticed."""

import time

from . import Violation

_TABLES = ("tm_db", "tm_entry", "tm_key", "tm_mark", "tm_epoch")
_PUT = "(SELECT max(off) FROM tidemark.tm_entry WHERE kind=0 AND prev>0)"
_DELETED = "(SELECT max(off) FROM tidemark.tm_key WHERE deleted)"
_COLUMNS = (
    "kind, hash, key, ident, labels, replica, {seq}, wtime, rtime, {prev}, size, attrs, vlen, value")

_PLANTED = {
    "an entry is lost": f"DELETE FROM tidemark.tm_entry WHERE off={_PUT}",
    "an entry with its key is lost": f"DELETE FROM tidemark.tm_key WHERE off={_PUT};"
        f" DELETE FROM tidemark.tm_entry WHERE off={_PUT}",
    "a change is entered twice": "UPDATE tidemark.tm_db SET head=head+1;"
        f" INSERT INTO tidemark.tm_entry SELECT d.db, d.head, {_COLUMNS} FROM tidemark.tm_entry"
        f" JOIN tidemark.tm_db d USING (db) WHERE off={_PUT}".format(seq="seq", prev="off"),
    "a value is another": "UPDATE tidemark.tm_entry SET value=convert_to(repeat('x', vlen::int),"
        f" 'UTF8') WHERE off={_PUT}",
    "a former offset is wrong": f"UPDATE tidemark.tm_entry SET prev=0 WHERE off={_PUT}",
    "a key has an older entry": "UPDATE tidemark.tm_key k SET off=e.prev FROM tidemark.tm_entry e"
        f" WHERE e.off=k.off AND e.off={_PUT}",
    "a delete is undone": f"UPDATE tidemark.tm_key SET deleted=false WHERE off={_DELETED}",
    "a sum is wrong": f"UPDATE tidemark.tm_key SET low=low+1 WHERE off={_PUT}",
    "bytes are not counted": "UPDATE tidemark.tm_db SET bytes=bytes-1",
    "garbage is counted twice": "UPDATE tidemark.tm_db SET garbage=garbage+1",
    "an offset is left out": "UPDATE tidemark.tm_db SET head=head+1",
    "a mark goes back": "UPDATE tidemark.tm_mark SET number=number-1 WHERE off="
        "(SELECT max(off) FROM tidemark.tm_mark)",
    "an epoch is another": "UPDATE tidemark.tm_epoch SET epoch=epoch+1;"
        " UPDATE tidemark.tm_db SET epoch=epoch+1",
}


def selfcheck(trial):
    """Lets devices write, and then changes one thing after the other."""
    cluster = trial.cluster()
    trial.start_servers(1, cluster.url)
    trial.start_devices(3)
    time.sleep(4)
    trial.rest()
    device = trial.devices[0]
    key = next(key for key in device.own if device.state.held(key))
    device.state.edit(key, None, None)
    device.settle()
    trial.judge(cluster)
    cluster.sql("CREATE SCHEMA spare")
    for table in _TABLES:
        cluster.sql(f"CREATE TABLE spare.{table} AS TABLE tidemark.{table}")
    for name, change in _PLANTED.items():
        cluster.sql(change)
        _expect_found(trial, cluster, name)
        for table in _TABLES:
            cluster.sql(
                f"TRUNCATE tidemark.{table};"
                f" INSERT INTO tidemark.{table} SELECT * FROM spare.{table}")
    remote = dict(device.state.remote)
    device.state.remote.popitem()
    _expect_found(trial, cluster, "a device lacks a key")
    device.state.remote = remote
    told = device.ledger.pop()
    _expect_found(trial, cluster, "nobody wrote an entry")
    device.ledger += [told, (told[0][:17] + "999999", *told[1:])]
    _expect_found(trial, cluster, "an acknowledged change is not there")
    device.ledger.pop()
    device.ledger[-1] = (*told[:2], told[2] + 1)
    _expect_found(trial, cluster, "a change was made upon another entry")
    device.ledger[-1] = told
    trial.judge(cluster)


def _expect_found(trial, cluster, name):
    found = trial.examine(cluster).wrong
    print(f"  {name}: {found[0] if found else 'NOT NOTICED'}", flush=True)
    if not found:
        raise Violation(f"the oracle does not notice that {name}")
    trial.count("planted faults noticed")
