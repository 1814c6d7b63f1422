"""Compares the runs of the index with the log that they were made from."""

from . import heads
from .fields import Fields


def problems(image):
    """Everything in a run that is not as it must be, as far as that shows in the run alone."""
    yield from image.faults
    if image.faults:
        # A broken chunk's content says nothing.
        return
    image.read = keys = image.read_keys()
    live = sum(1 for key in keys if key.is_counted)
    if live != image.live:
        yield image.damage(0, f"{live} keys are live, and the header says {image.live}")
    yield from _hash_table(image, keys)
    yield from _samples(image, keys)
    yield from _strings(image)
    yield from _lists(image, keys)
    usage = Fields(image.section(12), image.path, image.damage(12, "").offset)
    for _ in range(usage.varint()):
        usage.varint()
        usage.varint(usage.varint() + 1)
    usage.ended("usage")


def problems_together(runs, newest, history_from):
    """Everything in runs, oldest first, that is not as it must be when they lie over each other.

    - Parameters:
      - newest: for every key its newest entry up to the newest run's sequence, with the entry that
        its labels and value are of; None when not all of the log could be read.
      - history_from: below it the log may lack entries that the runs know.
    """
    # Per key the run that has the last word, and its place in that.
    keys = {}
    # Per label and key whether the newest run that lists the key says that it carries the label.
    carriers = {}
    # Per label how many keys carry it, as the newest run that names it says.
    counts = {}
    labels = {}
    for run in runs:
        for ordinal, key in enumerate(run.read):
            keys[key.key] = (run, ordinal, key)
        labels.update(run.labels)
        counts.update(run.counts)
        for label in run.places:
            listed = carriers.setdefault(label, {})
            for number in (1, 0):
                for ordinal in run.list(label, number):
                    listed[run.read[ordinal].key] = not number
        live = sum(1 for _, _, key in keys.values() if key.is_counted)
        if live != run.total_live:
            yield run.damage(0, f"{live} keys are live in all, and the header says {run.total_live}")
        expected = {}
        for name, (other, _, key) in keys.items():
            for label in other.sets[key.label_set] if key.is_live else ():
                expected.setdefault(label, set()).add(name)
        for label, listed in carriers.items():
            names = {name for name, carries in listed.items() if carries}
            if names != expected.get(label, set()):
                yield run.damage(5, f"the lists do not lead to the carriers of label {label}")
            if counts[label] != len(expected.get(label, ())):
                yield run.damage(5, f"the count of label {label} is {counts[label]}")
        if set(expected) - set(carriers):
            yield run.damage(5, "labels are missing")
    if newest is not None and runs:
        yield from _entries(runs[-1], keys, labels, newest, history_from)


def _hash_table(image, keys):
    buckets = image.sections[3][2]
    if image.sections[3][1] != 64 * buckets:
        raise image.damage(3, "the size of the table cannot be")
    used = sum(len(image.bucket(number)[0]) for number in range(buckets))
    if used != len(keys):
        yield image.damage(3, f"the table has {used} entries for {len(keys)} keys")
    longest = 0
    for ordinal, key in enumerate(keys):
        probe = image.find(key.key, ordinal)
        if probe is None:
            yield image.damage(3, f"the table does not lead to key {ordinal}")
            return
        longest = max(longest, probe)
    if longest != image.longest_probe:
        yield image.damage(
            3, f"the longest probe is {longest}, and the header says {image.longest_probe}")


def _samples(image, keys):
    samples = image.samples()
    expected = []
    for ordinal in range(0, len(keys), 16 * 16):
        key = keys[ordinal].key
        length = 0
        if ordinal:
            before = keys[ordinal - 1].key
            while key[:length] <= before:
                length += 1
        expected.append(key[:length])
    if samples != expected:
        yield image.damage(2, "the samples are not those of the keys")


def _strings(image):
    """Tables of labels and of sets of labels."""
    for offsets, content, table, limit in (
        (6, 7, 8, image.next_label), (9, 10, 11, image.next_set)
    ):
        for place, (number, text) in enumerate(image.strings(offsets, content).items()):
            if not image.leads_to(table, text, place):
                yield image.damage(table, f"the table does not lead to string {number}")
            if number >= limit:
                yield image.damage(offsets, f"string {number} was not given out yet")
    for number, members in image.sets.items():
        if any(a >= b for a, b in zip(members, members[1:])):
            yield image.damage(10, f"set {number} is not in order")
        if any(member not in image.labels for member in members):
            raise image.damage(10, f"set {number} has a label that is not there")


def _lists(image, keys):
    """The lists of the keys that carry a label."""
    carriers = {}
    for ordinal, key in enumerate(keys):
        if key.label_set not in image.sets:
            raise image.damage(0, f"key {ordinal} has a set of labels that is not there")
        for label in image.sets[key.label_set] if key.is_live else ():
            carriers.setdefault(label, []).append(ordinal)
    if set(carriers) - set(image.places):
        yield image.damage(5, "labels are missing")
    for label in image.places:
        if label not in image.labels:
            yield image.damage(5, f"label {label} has no string")
        if image.list(label, 0) != carriers.get(label, []):
            yield image.damage(5, f"the list of label {label} is not that of its carriers")
        if set(image.list(label, 1)) & set(carriers.get(label, [])):
            yield image.damage(5, f"the list of former carriers of label {label} has others")


def _entries(newest_run, keys, names, newest, history_from):
    """Sequences, sizes and labels against those of the log."""
    is_exact = newest_run.sequence >= history_from
    for name, (run, ordinal, key) in keys.items():
        entry, put = newest.get(name, (None, None))
        if entry is None or entry.sequence != key.sequence:
            # Compaction may have dropped what was the newest then.
            if is_exact and (key.is_live or entry is not None):
                yield run.damage(0, f"key {ordinal} has sequence {key.sequence}, not the log's")
            continue
        wanted = 0
        if entry.is_there:
            wanted = size_class(len(name) + put.value_length + 16)
            if put.is_cached:
                # Whether older entries may be the user's own shows in what may be gone by now.
                wanted = 64 | key.size_class & 32 | max(wanted // 2, 1)
            wanted |= 128 if entry.kind == heads.TOUCH else 0
        elif entry.kind == heads.EVICT:
            wanted = key.size_class & 64
        if key.size_class != wanted:
            yield run.damage(0, f"key {ordinal} has size class {key.size_class}, not {wanted}")
        labels = sorted(names[label] for label in run.sets[key.label_set])
        if labels != (put.labels if entry.is_there else []):
            yield run.damage(0, f"key {ordinal} has other labels than the log says")
    if is_exact:
        for name, (entry, _) in newest.items():
            if entry.is_there and name not in keys:
                yield newest_run.damage(0, f"the key of entry {entry.sequence} is missing")


def size_class(size):
    """The class of an entry's size in bytes."""
    size = max(size, 32)
    octave = size.bit_length() - 1
    third = (3 * size >> octave) - 3
    return min(1 + 3 * (octave - 5) + third, 63)
