"""Compares an index image with the log that it was made from."""

from . import heads
from .fields import Fields


def problems(image, newest, history_from):
    """Everything in the image that is not as it must be.

    - Parameters:
      - image: the image.
      - newest: for every key its newest entry up to the image's sequence, with the entry that
        its labels and value are of; None when not all of the log could be read.
      - history_from: below it the log may lack entries that the image knows.
    """
    yield from image.faults
    if image.faults:
        # What stands in a broken chunk says nothing.
        return
    keys = image.read_keys()
    live = sum(1 for key in keys if key.size_class)
    if live != image.live:
        yield image.damage(0, f"{live} keys are live, and the header says {image.live}")
    yield from _hash_table(image, keys)
    yield from _samples(image, keys)
    yield from _strings(image)
    yield from _lists(image, keys)
    usage = Fields(image.section(14), image.path, image.damage(14, "").offset)
    for _ in range(usage.varint()):
        usage.varint(), usage.varint()
    usage.ended("usage")
    if newest is not None:
        yield from _entries(image, keys, newest, history_from)


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
    for ordinal in range(0, len(keys), 16 * 256):
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
    """Tables and lists of free ids, of labels and of sets of labels."""
    for offsets, content, table, free in ((6, 7, 8, 9), (10, 11, 12, 13)):
        strings = image.strings(offsets, content)
        # Set 0 is the empty one; it stands among the free ids and is given to no other.
        unused = [number for number, text in enumerate(strings) if not text]
        for number, text in enumerate(strings):
            if text and not image.leads_to(table, text, number):
                yield image.damage(table, f"the table does not lead to string {number}")
        data = image.section(free)
        ids = [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
        if ids != unused:
            yield image.damage(free, "the free ids are not those of the empty strings")
    for number, members in enumerate(image.sets):
        if any(a >= b for a, b in zip(members, members[1:])):
            yield image.damage(11, f"set {number} is not in order")
        if any(member >= len(image.labels) or not image.labels[member] for member in members):
            raise image.damage(11, f"set {number} has a label that is not in use")


def _lists(image, keys):
    """The lists of the keys that carry a label."""
    carriers = {}
    for ordinal, key in enumerate(keys):
        if key.label_set >= len(image.sets):
            raise image.damage(0, f"key {ordinal} has a set of labels that is not there")
        for label in image.sets[key.label_set] if key.size_class else ():
            carriers.setdefault(label, []).append(ordinal)
    for label in range(len(image.labels)):
        if image.list(2 * label) != carriers.get(label, []):
            yield image.damage(5, f"the list of label {label} is not that of its carriers")
        if set(image.list(2 * label + 1)) & set(carriers.get(label, [])):
            yield image.damage(5, f"the list of former carriers of label {label} has others")


def _entries(image, keys, newest, history_from):
    """Sequences, sizes and labels against those of the log."""
    known = set()
    for ordinal, key in enumerate(keys):
        known.add(key.key)
        entry, put = newest.get(key.key, (None, None))
        if entry is None or entry.sequence != key.sequence:
            # Compaction may have dropped what was the newest then.
            if image.sequence >= history_from and (key.size_class or entry is not None):
                yield image.damage(0, f"key {ordinal} has sequence {key.sequence}, not the log's")
            continue
        wanted = 0
        if entry.is_there:
            wanted = size_class(len(key.key) + put.value_length + 16)
            wanted |= 128 if entry.kind == heads.TOUCH else 0
        if key.size_class != wanted:
            yield image.damage(0, f"key {ordinal} has size class {key.size_class}, not {wanted}")
        labels = sorted(image.labels[label] for label in image.sets[key.label_set])
        if labels != (put.labels if entry.is_there else []):
            yield image.damage(0, f"key {ordinal} has other labels than the log says")
    if image.sequence >= history_from:
        for key, (entry, _) in newest.items():
            if entry.is_there and key not in known:
                yield image.damage(0, f"the key of entry {entry.sequence} is missing")


def size_class(size):
    """The class of an entry's size in bytes."""
    octave = size.bit_length() - 1
    quarter = (size << 2 >> octave) & 3
    return min(1 + 4 * octave + quarter, 126)
