"""Every checksum of every file that belongs to a store, and what must agree between them."""

from . import attachment, check_image, heads, locator
from .checksums import xxh64
from .faults import Damage, Fault
from .fields import rest_is_zero
from .frame import Frame
from .image import Image
from .manifest import Manifest, read_copies, refuse_half_created
from .segment import PAGE, ActiveWalk
from .store import Store, tail_damage


class Check:
    """One walk over a store; problems are printed, one a line, as they are found."""

    def __init__(self, directory):
        self.directory = directory
        self.count = 0
        # The facts of the entries that later checks need: sequence -> (kind, key).
        self.entries = {}
        # The newest entry of each key up to the newest run's sequence.
        self.newest = {}
        self.is_whole = True

    def run(self):
        """Checks everything.

        - Returns: the status to exit with: 2 when there were problems.
        """
        copies = read_copies(self.directory)
        refuse_half_created(self.directory, copies)
        for name, copy in copies if any(copy is not None for _, copy in copies) else ():
            if copy is None:
                self.found(Damage(name, 0, "the file is missing"))
            elif not isinstance(copy, Manifest):
                self.found(copy)
        if self.count == len(copies):
            return 2
        store = Store(self.directory)
        self.manifest = store.manifest
        for row in self.manifest.damage:
            if not row.is_accepted:
                self.found(Damage(
                    f"segment {row.segment:08x}", row.offset, f"on record: {row.reason}"))
        for row in self.manifest.segments:
            self._guarded(lambda row=row: self._segment(store.segment(row)))
        if self.is_whole:
            self._references()
        self._guarded(self._index)
        for name in attachment.names(self.directory):
            try:
                attachment.check(self.directory, name)
            except Damage as damage:
                self.found(damage)
        return 2 if self.count else 0

    def found(self, problem):
        """Prints a problem."""
        self.count += 1
        print(problem, flush=True)

    def _guarded(self, body):
        """Goes on with the next file after damage that hides the rest of one."""
        try:
            body()
        except Fault as fault:
            self.is_whole = False
            self.found(fault)

    def _lost(self, problem):
        """Prints a problem that hides entries."""
        self.is_whole = False
        self.found(problem)

    def _segment(self, segment):
        for offset in (0, PAGE):
            try:
                segment.page(offset)
            except Damage as damage:
                self.found(damage)
        segment.open_header()
        self._dictionary(segment)
        if not segment.row.is_sealed:
            self._active(segment)
            return
        segment.open_footer()
        expected = locator.Expected(segment.row)
        if not self._frames(segment, expected):
            expected = None
        for problem in locator.problems(segment, expected):
            self.found(problem)

    def _dictionary(self, segment):
        header = segment.header
        length = header.dictionary_length
        at = 2 * PAGE
        for offset in (header.dictionary, header.dictionary_copy) if length else ():
            try:
                segment.dictionary_at(offset)
            except Damage as damage:
                self.found(damage)
            self._zeros(segment, at, offset)
            at = offset + length
        self._zeros(segment, at, header.frames)

    def _zeros(self, segment, start, end):
        if not rest_is_zero(segment.read(start, end - start), 0):
            self.found(Damage(segment.path, start, f"up to {end} there must be zeros"))

    def _active(self, segment):
        walk = ActiveWalk(segment)
        damage = tail_damage(walk, self.manifest)
        if damage:
            self._lost(damage)
        for frame in walk.frames:
            self._values(segment, frame)
            self._take(frame)

    def _frames(self, segment, expected):
        """Walks a sealed segment.

        - Returns: whether all of it could be read.
        """
        offset, sequence, chain, entries = segment.header.frames, segment.row.first, 0, 0
        latest, commit_time, in_batch = None, 0, False
        records = 0
        # One for the newest versions, and one for history.
        last = [(b"", 0), (b"", 0)]
        before = self.count
        while offset < segment.footer.locator:
            header = segment.frame_header(offset)
            chain = xxh64(header.bytes, chain)
            offset = header.end
            entries += header.entries
            try:
                frame = Frame(segment, header)
                sequence = segment.check_sequences(frame, sequence)
            except Damage as damage:
                self._lost(damage)
                sequence += header.entries
                continue
            try:
                frame.check_padding()
            except Damage as damage:
                self.found(damage)
            self._values(segment, frame)
            expected.add(frame)
            for entry in frame.entries:
                latest = max(latest or self._time(entry), self._time(entry))
                commit_time = max(commit_time, entry.commit_time)
                in_batch = not entry.ends_batch
                records += entry.kind == heads.RECORD
                order = (entry.key, entry.sequence)
                if segment.row.is_compacted and order <= last[header.is_history]:
                    self.found(Damage(
                        segment.path, header.offset, f"entry {entry.sequence} is not in order"))
                last[header.is_history] = order
            self._take(frame)
        footer = segment.footer
        if (offset, chain, entries) != (footer.locator, footer.chain, footer.slots):
            self._lost(Damage(segment.path, footer.offset, "the frames are not those sealed"))
        elif before == self.count:
            self._totals(segment, latest, commit_time, in_batch)
            if records and footer.is_recordless:
                self.found(Damage(
                    segment.path, footer.offset, f"there are {records} records, not none"))
        return before == self.count

    @staticmethod
    def _time(entry):
        """The entry's own time, else that of its commit."""
        frame = entry.frame
        attributes = heads.attributes(entry.attributes, frame.segment.path, frame.header.offset)
        if attributes.time is not None:
            return attributes.time
        seconds, milliseconds = divmod(entry.commit_time >> 16, 1000)
        return seconds, milliseconds * 1_000_000

    def _totals(self, segment, latest, commit_time, in_batch):
        """The footer's facts of all entries."""
        footer = segment.footer
        if latest != footer.latest:
            self.found(Damage(
                segment.path, footer.offset, f"the latest time is {latest}, not {footer.latest}"))
        if commit_time != footer.commit_time:
            self.found(Damage(
                segment.path, footer.offset,
                f"the latest commit time is {commit_time}, not {footer.commit_time}"))
        if in_batch and not segment.row.is_compacted:
            self.found(Damage(segment.path, footer.locator, "the last batch has no end"))

    def _values(self, segment, frame):
        """Decodes every block; each that fails is a problem of its own."""
        for index in range(len(frame.blocks)):
            try:
                segment.content(frame, index)
            except Damage as damage:
                self.found(damage)

    def _take(self, frame):
        """Keeps what is compared later, and lets the frame go."""
        for entry in frame.entries:
            self.entries[entry.sequence] = entry
            if entry.kind == heads.RECORD:
                continue
            covered = self.manifest.images[-1].sequence if self.manifest.images else 0
            other = self.newest.get(entry.key)
            if entry.sequence <= covered and (other is None or other.sequence < entry.sequence):
                self.newest[entry.key] = entry
        frame.entries = []

    def _references(self):
        """Touches name puts of their keys, and every entry the one of its key before it."""
        last, before = 0, {}
        for sequence, entry in sorted(self.entries.items()):
            path, offset = entry.frame.segment.path, entry.frame.header.offset
            if entry.commit_time < last:
                self.found(Damage(path, offset, f"the commit time goes back at entry {sequence}"))
            last = entry.commit_time
            if entry.kind == heads.RECORD:
                continue
            known = before.get(entry.key, 0)
            before[entry.key] = sequence
            named = entry.previous or 0
            # A version that compaction has dropped may still be named, but nothing older than what
            # stayed.
            if named != known and (named in self.entries or named < known):
                self.found(Damage(
                    path, offset, f"entry {sequence} names {named} before it, not {known}"))
            put = self.entries.get(entry.value_sequence)
            # The cached value that a touch renewed may be gone.
            is_gone = put is None and (entry.value_sequence or 0) <= self.manifest.evicted_through
            if entry.kind == heads.TOUCH and not is_gone and (
                put is None or put.kind != heads.PUT or put.key != entry.key
            ):
                self.found(Damage(path, offset, f"touch {sequence} names no put of its key"))

    def _index(self):
        """The runs of the index, each by itself and then together."""
        runs, beneath, before = [], 0, self.count
        for row in self.manifest.images:
            try:
                run = Image(
                    self.directory, row, self.manifest.store, self.manifest.hash_seed, beneath)
                for problem in check_image.problems(run):
                    self.found(problem)
                runs.append(run)
            except Fault as fault:
                self.found(fault)
            beneath = row.sequence
        if self.count > before:
            return
        pairs = None
        if self.is_whole:
            pairs = {
                key: (entry, self.entries.get(entry.value_sequence, entry))
                for key, entry in self.newest.items()
            }
        for problem in check_image.problems_together(runs, pairs, self.manifest.history_from):
            self.found(problem)
