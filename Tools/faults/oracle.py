"""The contents that a store must hold, compared with the imported lines without the engine."""

import json
import re
from datetime import datetime

_OWN_NAME = re.compile(rb'"op_id":"[^"]*",')
_PLACE = re.compile(rb'^\{"seq":\d+,')


class Violation(Exception):
    """Something that must never be."""


class Oracle:
    """The lines in their order, and what an undisturbed store makes of them."""

    def __init__(self, lines):
        self.lines = lines
        self._history = None
        self._states = {}

    def learn(self, history):
        """Takes the history of an undisturbed store, which has to say what the lines say."""
        exported = history.splitlines()
        if len(exported) != len(self.lines):
            raise Violation(f"{len(exported)} entries from {len(self.lines)} lines")
        for number, (line, entry) in enumerate(zip(self.lines, exported), 1):
            if _meaning(json.loads(line)) != _meaning(json.loads(entry)):
                raise Violation(f"without a fault line {number} reads back otherwise")
        self._history = [_OWN_NAME.sub(b"", entry) for entry in exported]

    def check_history(self, history, count):
        """The store must hold the first `count` lines, and nothing else."""
        entries = [_OWN_NAME.sub(b"", entry) for entry in history.splitlines()]
        if entries == self._history[:count]:
            return
        for number, (entry, expected) in enumerate(zip(entries, self._history[:count]), 1):
            if entry != expected:
                raise Violation(f"entry {number} is another than line {number}")
        raise Violation(f"the history has {len(entries)} entries, not {count}")

    def check_state(self, state, count):
        """The newest values must be those of the first `count` lines."""
        if count not in self._states:
            newest = {}
            for entry in self._history[:count]:
                text = _PLACE.sub(b"{", entry)
                record = json.loads(text)
                key = _bytes(record, "key")
                newest.pop(key, None)
                if record["op"] != "delete":
                    newest[key] = text
            self._states[count] = [newest[key] for key in sorted(newest)]
        if state.splitlines() != self._states[count]:
            raise Violation(f"the state is not that after line {count}")


def _meaning(record):
    time = record.get("time")
    return (
        record.get("op", "put"), _bytes(record, "key"), _bytes(record, "value"),
        sorted(set(record.get("labels", []))), record.get("hash", "").lower(),
        record.get("max_age"), record.get("class", "owned"),
        datetime.fromisoformat(time.replace("Z", "+00:00")) if time else None)


def _bytes(record, name):
    if name + "_base64" in record:
        return ("base64", record[name + "_base64"])
    return ("text", record.get(name))
