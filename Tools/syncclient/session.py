"""The meaning of the calls: numbered batches, verdicts, the cursor, and sums."""

import secrets

from . import attachment, wire
from .digest import Moved, Table, compare
from .faults import BadAnswer, StartAnew, Usage, one_line
from .state import CONFLICT
from .wire import KEY_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX, ROWS_MAX, VALUE_BYTES_MAX, offset

_COMPARE_ATTEMPTS = 5
_VALUES_PER_CALL = 1_000


class Session:
    """A client that speaks with its server; everything it learns is saved before it goes on."""

    def __init__(self, state, connection):
        self._state, self._connection = state, connection
        self._limits = None
        self._attachment_bytes = 0

    def _call(self, name, **fields):
        return self._connection.call(name, replica=self._state.replica, **fields)

    def hello(self):
        """Begins: finds out whether both sides still know of each other what they should.

        - Returns: the verdicts on a batch whose answer had been lost.
        """
        state = self._state
        # A client that only sends is kept no deletes for.
        direction = {"reads_nothing": True} if state.push_only else {}
        answer = self._call("hello", cursor=state.cursor, **direction)
        feed = answer.hexadecimal("feed", 32)
        if state.feed not in ("", feed):
            raise StartAnew("the server's database is another one than before; use `restart`")
        if not answer.range().contains(state.cursor):
            raise StartAnew("the server was restored from a backup; use `restart`")
        self._check_reach(answer)
        if answer.flag("lease_expired"):
            raise StartAnew("the lease has run out; use `restart`")
        limits = answer.object("limits")
        self._limits = (
            limits.number("changes", below=1 << 31), limits.number("bytes", below=1 << 31))
        self._attachment_bytes = answer.number("attachment_bytes", absent=0)
        state.feed = feed
        return self._settle(answer.mark())

    def _check_reach(self, answer):
        """Entries that the token reaches now may lie before the cursor, and nobody will tell of
        those beyond its reach.
        """
        state = self._state
        reach = answer.reach()
        if reach and state.reach and reach != state.reach:
            raise StartAnew("the token reaches other entries than before; use `restart`")
        state.reach = reach or state.reach

    # Push

    def push(self):
        """Sends everything that is pending, batch by batch.

        - Returns: the verdicts, as (key, verdict, words).
        """
        verdicts = self.hello()
        while self._state.in_flight or self._form():
            batch = self._state.in_flight
            # A server that was restarted before the batch came may have let go of content.
            for change in batch["changes"]:
                if "attachment" in change:
                    attachment.send(
                        self._call, change["key"], change["attachment"], change.get("file") or "")
            reach = {"reach": self._state.reach} if self._state.reach else {}
            answer = self._call(
                "push", **reach, number=batch["number"], batch=batch["batch"],
                previous_batch=self._state.batch,
                changes=[_change(change) for change in batch["changes"]])
            verdicts += self._settle(answer.mark())
            if self._state.in_flight:
                raise BadAnswer("the server has answered, and does not have the batch")
        if self._state.push_only:
            self._read(own_only=True)
        return verdicts

    def _form(self):
        """Makes a batch of what is pending and writes it down: from here on it is the batch with
        this number, whatever happens.

        - Returns: whether there is one.
        """
        state = self._state
        most_changes, most_bytes = self._limits
        changes, size = [], 0
        ready = [(c["seq"], key) for key, c in state.pending.items() if "waits" not in c]
        for _, key in sorted(ready):
            change = state.pending[key]
            if "attachment" in change and not self._send_content(key, change):
                continue
            size += len(wire.to_bytes(key)) + len(wire.to_bytes(change.get("value", "")))
            if changes and (len(changes) == most_changes or size > most_bytes):
                break
            changes.append({"key": key, **change})
        if not changes:
            state.save()
            return False
        for change in changes:
            del state.pending[change["key"]]
        # Any number but 0, which stands for no batch.
        batch = f"{secrets.randbits(64) or 1:016x}"
        state.in_flight = {"number": state.number + 1, "batch": batch, "changes": changes}
        state.save()
        return True

    def _send_content(self, key, change):
        """Sends the content that a change names, so that a batch may have it.

        - Returns: whether the server has it; else the change waits for somebody to decide.
        """
        if not self._attachment_bytes:
            change["waits"] = "the server takes no attachments"
        else:
            try:
                attachment.send(self._call, key, change["attachment"], change.get("file") or "")
            except attachment.Refused as fault:
                change["waits"] = str(fault)
        return "waits" not in change

    def fetch(self, key, path):
        """Fetches the content of the attachment that the server's entry of a key names."""
        self.hello()
        held = self._state.remote.get(key) or {}
        if "attachment" not in held:
            raise Usage("the server's entry of this key names no attachment")
        attachment.fetch(self._call, key, held["attachment"], path)

    def _settle(self, mark):
        """Takes what the server says of our batches; before anything else in its answer."""
        state, batch = self._state, self._state.in_flight
        if (mark.number, mark.batch) == (state.number, state.batch):
            return []
        if mark.number < state.number:
            raise StartAnew("the server has lost batches that it had answered; use `restart`")
        if not batch or (mark.number, mark.batch) != (batch["number"], batch["batch"]):
            raise StartAnew(
                "the server has batches of this client that are not in the state file, which was"
                " copied or restored; use `restart`")
        if len(mark.verdicts) != len(batch["changes"]):
            raise BadAnswer("there are not as many verdicts as changes")
        results = [
            self._take(change, verdict) for change, verdict in zip(batch["changes"], mark.verdicts)]
        state.in_flight = {}
        state.number, state.batch = mark.number, mark.batch
        state.save()
        self._fetch([key for key, name, _ in results if name in ("conflict", "lost")])
        return results

    def _take(self, change, verdict):
        """Does what one verdict says."""
        state, key = self._state, change["key"]
        name, words = verdict.text("verdict"), ""
        if name in ("applied", "duplicate"):
            position = verdict.position("position")
            state.know(
                key, position, change.get("value"), change.get("labels"),
                change.get("attachment"))
            state.set_base(key, position)
        elif name == "conflict":
            words = CONFLICT
            state.put_back(change, waits=words)
        elif name == "lost":
            words = "the server's policy has decided for what it has"
            state.set_base(key, change["base"])
        elif name == "rejected":
            words = one_line(f"{verdict.text('code')}: {verdict.text('message', absent='')}")
            state.put_back(change, waits=words)
        elif name == "aborted":
            words = "another change of its group was not applied"
            state.put_back(change, waits=words)
        else:
            raise BadAnswer(f"the verdict {one_line(name)} is not known here")
        return key, name, words

    def _fetch(self, keys):
        """Asks what keys hold of which the server has something that was not pulled yet."""
        while keys:
            answer = self._call(
                "values", keys=[wire.field("key", key) for key in keys[:_VALUES_PER_CALL]])
            answered = answer.number("answered", below=_VALUES_PER_CALL + 1)
            found = answer.objects("entries", ROWS_MAX)
            if not 0 < answered <= len(keys):
                raise BadAnswer("the server answers for no key, or for more than were asked for")
            for key in keys[:answered]:
                self._state.remote.pop(key, None)
            for entry in found:
                self._enter(entry)
            self._state.save()
            keys = keys[answered:]

    # Pull

    def pull(self):
        """Reads the feed from the cursor to its end.

        - Returns: how many entries of others came.
        """
        if self._state.push_only:
            raise Usage("this client only sends; make another one to pull")
        self.hello()
        return self._read()

    def _read(self, **which):
        """Reads on from the cursor: to the end of the feed, or with `own_only` to the first entry
        of somebody else.

        - Returns: how many entries of others came.
        """
        state, count = self._state, 0
        while True:
            answer = self._call("pull", after=state.cursor, **which)
            self._check_reach(answer)
            self._settle(answer.mark())
            entries = answer.objects("entries", ROWS_MAX)
            count += sum(self._enter(entry) for entry in entries)
            cursor, head = answer.position("cursor"), answer.range().head
            if offset(cursor) <= offset(state.cursor) and offset(cursor) < head:
                if which:
                    return count
                raise BadAnswer("the server's cursor does not go on")
            state.cursor = cursor
            # A page and how far it goes are one write.
            state.forget_deletes()
            state.save()
            if offset(cursor) >= head:
                return count

    def _enter(self, entry):
        """Takes one entry of the feed.

        - Returns: whether it is of somebody else.
        """
        state = self._state
        op, position = entry.text("op"), entry.position("position")
        replica, sequence = entry.operation("op_id")
        if replica == state.replica and sequence > state.sequence:
            raise StartAnew("somebody else writes under this client's name; use `restart`")
        if op == "own":
            return False
        key = entry.bytes("key", KEY_BYTES_MAX)
        state.see_commit_time(int(entry.hexadecimal("commit_time", 16, absent="0" * 16), 16))
        if op == "put":
            value = entry.bytes("value", VALUE_BYTES_MAX)
            labels = entry.byte_list("labels", LABELS_MAX, LABEL_BYTES_MAX)
            state.know(key, position, value, labels, entry.attachment())
        elif op in ("delete", "left"):
            state.know(key, position, None, None)
        else:
            raise BadAnswer(f"the entry {one_line(op)} is not known here")
        return replica != state.replica

    # Compare, and begin anew

    def compare(self):
        """Compares what the server has with what this client knows that it has; changes that are
        not pushed do not count.
        """
        self.hello()
        table = Table(
            (key, held["value"], held["labels"], held.get("attachment"))
            for key, held in self._state.remote.items() if "value" in held)
        for attempt in range(_COMPARE_ATTEMPTS):
            try:
                return compare(
                    table, lambda paths: self._call("digest", paths=[path.hex() for path in paths]))
            except Moved:
                if attempt + 1 == _COMPARE_ATTEMPTS:
                    raise

    def restart(self):
        """Begins anew under another name, and pulls everything, unless it only sends.

        - Returns: how many entries came.
        """
        replica = secrets.token_hex(16)
        answer = self._connection.call("hello", replica=replica)
        self._state.begin_anew(replica, answer.range().contains)
        self._state.save()
        return 0 if self._state.push_only else self.pull()


def _change(change):
    """A change as it is sent; of the same change it is the same each time."""
    fields = {
        "seq": change["seq"], "op": change["op"], **wire.field("key", change["key"]),
        "commit_time": change["commit_time"]}
    if change["base"]:
        fields["base"] = change["base"]
    if change["op"] == "put":
        fields.update(wire.field("value", change["value"]))
        fields.update(wire.list_field("labels", change["labels"]))
        if "attachment" in change:
            fields["attachment"] = change["attachment"]
    return fields
