"""What must be true when all is quiet: in the tables, of each answer, and on every device."""

from syncclient import wire
from syncclient.connection import Connection
from syncclient.digest import Table, compare, fingerprint, key_hash
from syncclient.faults import Unavailable

from . import Violation

_PUT, _DELETE, _LOSER = 0, 1, 2
# What a row counts for in `tm_db.bytes` besides key, labels, value and attachment.
_ROW_BYTES = 128


class Entry:
    """A row of `tm_entry`."""

    def __init__(self, columns):
        off, kind, hash_, key, ident, labels, replica, seq, prev, length, value = columns
        self.off, self.kind, self.hash = int(off), int(kind), int(hash_)
        self.key, self.replica, self.seq = _text(key), replica, int(seq)
        self.ident = ident or key
        self.labels = tuple(_labels(bytes.fromhex(labels)))
        self.prev, self.length, self.value = int(prev), int(length), _text(value)
        self.size = _ROW_BYTES + len(key) // 2 + len(labels) // 2 + self.length


def _text(digits):
    return wire.from_bytes(bytes.fromhex(digits))


def _labels(column):
    while column:
        yield wire.from_bytes(column[1 : column[0] + 1])
        column = column[column[0] + 1 :]


def _signed(number):
    return number - (1 << 64) if number >> 63 else number


class Contents:
    """The rows of one database."""

    _ROW = (
        "head, truncated, history_from, bytes, garbage, to_hex(epoch), state")
    _ENTRY = (
        "off, kind, hash, encode(key, 'hex'), encode(ident, 'hex'), encode(labels, 'hex'),"
        " encode(replica, 'hex'), seq, prev, vlen, encode(coalesce(value, ''), 'hex')")
    _KEY = (
        "encode(ident, 'hex'), hash, off, deleted, encode(labels, 'hex'), low, high")

    def __init__(self, cluster, name):
        found = cluster.sql(f"SELECT db FROM tidemark.tm_name WHERE name='{name}'")
        if len(found) != 1:
            raise Violation(f"{len(found)} databases are named {name}")
        self.name, self.db = name, found[0][0]

        def rows(columns, table, order):
            return cluster.sql(
                f"SELECT {columns} FROM tidemark.{table} WHERE db={self.db} ORDER BY {order}")

        # A server that compacts changes the database's row with each slice.
        row = None
        while row != (row := rows(self._ROW, "tm_db", "db")[0]):
            self._read(rows)
        self.head, self.truncated, self.history_from, self.bytes, self.garbage = map(int, row[:5])
        self.epoch, self.state = row[5], row[6]
        for entry in self.entries:
            entry.size += int(self.named.get(entry.off, "::0").split(":")[2])
        self.by_offset = {entry.off: entry for entry in self.entries}
        self.last = {
            entry.ident: entry for entry in self.entries if entry.kind != _LOSER}

    def _read(self, rows):
        self.entries = [Entry(columns) for columns in rows(self._ENTRY, "tm_entry", "off")]
        self.keys = rows(self._KEY, "tm_key", "hash, ident")
        self.marks = {
            replica: (int(number), int(batch), int(off)) for replica, number, batch, off in rows(
                "encode(replica, 'hex'), number, batch, off", "tm_mark", "off")}
        self.epochs = [
            (int(first), epoch)
            for first, epoch in rows("first, to_hex(epoch)", "tm_epoch", "first")]
        # Names of attachments by the offsets of entries.
        self.named = {
            int(off): f"sha256:{id_[:64]}:{int(id_[64:], 16)}"
            for off, id_ in rows("off, encode(id, 'hex')", "tm_ref", "off")}

    def position(self, offset):
        listed = [epoch for first, epoch in self.epochs if first <= offset]
        return f"{listed[-1] if listed else '0':0>16}-{offset}"

    def held(self):
        """Value, labels, attachment and position of each key that is there."""
        return {
            entry.key: (
                entry.value, entry.labels, self.named.get(entry.off), self.position(entry.off))
            for entry in self.last.values() if entry.kind == _PUT}


class Oracle:
    """Gathers what is wrong, so that one failure is told with all that belongs to it."""

    def __init__(self, cluster, name, is_compacted=False, detects=True):
        """
        - Parameter detects: whether a change in conflict never applies, whatever its time.
        """
        self._cluster, self.rows = cluster, Contents(cluster, name)
        self.is_compacted, self.detects = is_compacted, detects
        self.wrong = []

    def expect(self, holds, text):
        if not holds:
            self.wrong.append(text)

    def verdict(self):
        """- Raises: Violation with the first of what is wrong."""
        if self.wrong:
            shown = "\n  ".join(self.wrong[:8])
            raise Violation(f"{self.rows.name}: {len(self.wrong)} wrong:\n  {shown}")

    # Tables

    def check_tables(self):
        rows = self.rows
        self._check_offsets()
        self._check_chains()
        self._check_keys()
        size = sum(entry.size for entry in rows.entries)
        self.expect(rows.bytes == size, f"bytes is {rows.bytes}, the entries have {size}")
        current = {entry.off for entry in rows.last.values()}
        garbage = sum(e.size for e in rows.entries if e.off not in current)
        losers = sum(entry.size for entry in rows.entries if entry.kind == _LOSER)
        self.expect(
            rows.garbage == garbage, f"garbage is {rows.garbage}, {garbage - losers} bytes are"
            f" superseded and {losers} have lost")
        firsts = [first for first, _ in rows.epochs]
        self.expect(
            rows.epochs and rows.epochs[-1][1] == rows.epoch and firsts[-1] <= rows.head + 1,
            f"the epochs {rows.epochs} do not end with {rows.epoch} within head {rows.head}")
        self.expect(rows.state == "0", f"the state is {rows.state}")

    def _check_offsets(self):
        rows = self.rows
        marks = [off for _, _, off in rows.marks.values()]
        self.expect(len(set(marks)) == len(marks), "two marks have one offset")
        self.expect(
            not set(marks) & set(rows.by_offset), "an entry and a mark have one offset")
        outside = [off for off in [*rows.by_offset, *marks] if not 0 < off <= rows.head]
        self.expect(not outside, f"offsets outside of 1...{rows.head}: {outside[:5]}")
        if not self.is_compacted:
            # Each batch takes an offset for each of its entries and one for its mark.
            taken = len(rows.entries) + sum(number for number, _, _ in rows.marks.values())
            self.expect(
                taken == rows.head, f"head is {rows.head}, entries and batches are {taken}")
        doubled = len(rows.entries) - len({(e.replica, e.seq) for e in rows.entries})
        self.expect(doubled == 0, f"{doubled} changes have two entries")

    def _check_chains(self):
        before = {}
        for entry in self.rows.entries:
            if entry.kind == _LOSER:
                continue
            former = before.get(entry.ident, 0)
            # Compaction drops entries from the beginning of chains.
            is_gone = self.is_compacted and former == 0 and entry.prev < entry.off
            self.expect(
                entry.prev == former or is_gone,
                f"entry {entry.off} follows {entry.prev}, its key's entry before is {former}")
            before[entry.ident] = entry.off
            self.expect(
                entry.length == len(wire.to_bytes(entry.value)),
                f"the value of entry {entry.off} has another length")

    def _check_keys(self):
        there = {}
        for ident, hash_, off, deleted, labels, low, high in self.rows.keys:
            there[ident] = (int(hash_), int(off), deleted == "t", labels, int(low), int(high))
        self.expect(
            set(there) == set(self.rows.last),
            f"tm_key has {len(there)} keys, the entries have {len(self.rows.last)}")
        for ident, entry in self.rows.last.items():
            hash_ = int.from_bytes(key_hash(entry.key), "big") ^ 1 << 63
            deleted = entry.kind == _DELETE
            print_ = 0 if deleted else fingerprint(
                entry.key, entry.value, entry.labels, self.rows.named.get(entry.off))
            labels = b"".join(
                bytes([len(label)]) + label for label in map(wire.to_bytes, entry.labels)).hex()
            expected = (
                _signed(hash_), entry.off, deleted, labels, _signed(print_ & (1 << 64) - 1),
                _signed(print_ >> 64))
            self.expect(
                there.get(ident) == expected and entry.hash == expected[0],
                f"tm_key has {there.get(ident)} for the entry {expected}")

    def check_contents(self):
        """Each content is whole, each that an entry names is there, and no part is left alone."""
        def rows(text):
            return self._cluster.sql(text.replace("DB", self.rows.db))

        there = {}
        for id_, sum_ in rows(
                "SELECT encode(c.id, 'hex'), encode(sha256(coalesce((SELECT string_agg(k.bytes,"
                " ''::bytea ORDER BY k.at) FROM tidemark.tm_chunk k WHERE k.db=c.db AND"
                " k.owner=c.chunks), '')), 'hex') FROM tidemark.tm_content c WHERE c.db=DB"):
            there[f"sha256:{id_[:64]}:{int(id_[64:], 16)}"] = sum_
            self.expect(id_[:64] == sum_, f"content {id_} has the sum {sum_}")
        missing = [off for off, name in self.rows.named.items() if name not in there]
        self.expect(not missing, f"entries name contents that are not there: {missing[:5]}")
        strange = [off for off in self.rows.named if off not in self.rows.by_offset]
        self.expect(not strange, f"references of entries that are not there: {strange[:5]}")
        alone = rows(
            "SELECT DISTINCT owner FROM tidemark.tm_chunk WHERE db=DB AND owner NOT IN ("
            "SELECT chunks FROM tidemark.tm_content WHERE db=DB UNION"
            " SELECT chunks FROM tidemark.tm_upload WHERE db=DB UNION"
            " SELECT owner FROM tidemark.tm_orphan WHERE db=DB)")
        self.expect(not alone, f"parts of no content: {alone[:5]}")

    # Answers

    def check_digest(self, address):
        """Compares what a server says of sums with a fresh count of the rows."""
        link = Connection(f"{address}/{self.rows.name}", seconds=30, attempts=1)
        table = Table((key, *held[:3]) for key, held in self.rows.held().items())
        try:
            found = compare(
                table, lambda paths: link.call(
                    "digest", replica="f" * 32, paths=[path.hex() for path in paths]))
        except Unavailable as error:
            return self.expect(False, f"{address} has no digest: {error}")
        self.expect(
            not found, f"{address}'s digest differs: here {found.only_here[:3]}, there"
            f" {found.only_there[:3]}, other {found.different[:3]}")

    # Devices

    def check_device(self, device):
        """The device has what the tables have."""
        there, here = self.rows.held(), device.contents()
        for key in sorted(set(there) | set(here)):
            self.expect(
                there.get(key) == here.get(key),
                f"device {device.number} has {_shown(here.get(key))} at {key[:20]},"
                f" the tables {_shown(there.get(key))}")
        state = device.state
        mark = self.rows.marks.get(state.replica, (0, 0, 0))
        batch = mark[1] & (1 << 64) - 1
        self.expect(
            (mark[0], f"{batch:016x}") == (state.number, state.batch),
            f"device {device.number} has batch {state.number} {state.batch}, its mark {mark}")

    def check_ledgers(self, devices):
        """Every acknowledged change is one entry where it was said to be, and nothing else is."""
        told = {}
        for position, row, base in (row for device in devices for row in device.ledger):
            offset = wire.offset(position)
            self.expect(offset not in told, f"two changes were told offset {offset}")
            told[offset] = row
            self.expect(
                position == self.rows.position(offset),
                f"position {position} is now {self.rows.position(offset)}")
            if entry := self.rows.by_offset.get(offset):
                self._check_told(entry, row, base)
        last = {told[offset][0]: offset for offset in sorted(told)}
        for offset in set(told) - set(self.rows.by_offset):
            key, value, *_ = told[offset]
            # A compaction leaves the last entry of a key, unless that is an old delete.
            self.expect(
                self.is_compacted and (value is None or offset < last[key]),
                f"acknowledged entry {offset} is lost: {key[:20]}")
        strange = [e.off for e in self.rows.entries if e.kind != _LOSER and e.off not in told]
        self.expect(not strange, f"entries that nobody wrote, or twice: {strange[:5]}")

    def _check_told(self, entry, row, base):
        value = entry.value if entry.kind == _PUT else None
        self.expect(
            (entry.key, value, entry.replica, entry.seq) == row,
            f"entry {entry.off} is {(entry.key[:20], entry.replica, entry.seq)}, not {row[2:]}")
        former = self.rows.by_offset.get(entry.prev)
        # Upon nothing is upon a delete, too; one may be dropped.
        was_gone = former is None or former.kind == _DELETE
        self.expect(
            not self.detects or entry.prev == base or base == 0 and was_gone,
            f"entry {entry.off} was made upon {base}, and overwrites {entry.prev}")

    def check_own(self, devices):
        """After a loss: what a device wrote last to a key of its own is there.

        - Returns: how many keys are there whose deletion was acknowledged and lost.
        """
        there, back = self.rows.held(), 0
        for device in devices:
            for key, value in device.last_of_own().items():
                held = there.get(key, (None,))[0]
                if value is None:
                    back += held is not None
                else:
                    self.expect(
                        held == value, f"{key[:20]} of device {device.number} has"
                        f" {_shown(held)}, acknowledged was {_shown(value)}")
        return back


def _shown(value):
    return str(value)[:60]
