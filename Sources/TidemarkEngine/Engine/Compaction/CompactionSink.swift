/// Takes the entries that stay, in order, and writes them into a segment: what one thread does
/// while another reads and merges.
struct CompactionSink: Sendable {
  private var writer: CompactedSegmentWriter
  private let labels: LabelSets
  /// By number of a set of labels: the writer's id for it; 0 while it has none.
  private var labelSetIDs: [UInt32] = [0]
  private var syncedLength = 0

  init(_ writer: CompactedSegmentWriter, labels: LabelSets) {
    self.writer = writer
    self.labels = labels
  }

  /// Writes the entries of a batch.
  mutating func add(_ batch: [UInt8]) throws(LogReadError) {
    var start = 0
    while start < batch.count {
      let entry: LooseEntry
      do { entry = try LooseEntry(batch.rawSpan, at: start) } catch { throw .format(error) }
      if !entry.isUnwanted { try add(entry, batch, at: start) }
      start += entry.byteCount
    }
  }

  private mutating func add(
    _ entry: LooseEntry, _ batch: [UInt8], at start: Int
  ) throws(LogReadError) {
    func place(_ part: Range<Int>) -> Range<Int> {
      (start + part.lowerBound)..<(start + part.upperBound)
    }
    var written = entry.entry
    written.labelSetID = labelSetID(entry.labelSet)
    let bytes = batch.rawSpan
    try writer.add(
      written, key: bytes.extracting(place(entry.keyPlace)),
      value: entry.hasValue ? bytes.extracting(place(entry.valuePlace)) : nil,
      attributes: bytes.extracting(place(entry.attributesPlace)), isSuperseded: entry.isHistory)
  }

  private mutating func labelSetID(_ number: UInt32) -> UInt32 {
    guard number > 0 else { return 0 }
    while labelSetIDs.count <= Int(number) { labelSetIDs.append(0) }
    if labelSetIDs[Int(number)] == 0 {
      labelSetIDs[Int(number)] = writer.labelSetID(for: labels.labels(number))
    }
    return labelSetIDs[Int(number)]
  }

  /// See ``CompactedSegmentWriter``.
  mutating func finish(
    lastSequence: UInt64, latestTime: Timestamp?, latestCommitTime: UInt64
  ) throws(LogReadError) -> Manifest.Segment {
    try writer.finish(
      lastSequence: lastSequence, latestTime: latestTime, latestCommitTime: latestCommitTime)
  }

  /// Syncs what was written so far, once that is enough.
  mutating func sync() throws(LogReadError) {
    guard writer.length - syncedLength >= Limits.compactionSyncBytes else { return }
    syncedLength = writer.length
    try writer.syncSoFar()
  }

  mutating func discard() { writer.discard() }
}

/// The entries that stay, on their way to a sink.
struct SurvivorBatch {
  /// Handed over once it has so many bytes.
  static let fullBytes = 2 << 20

  private(set) var bytes: [UInt8] = []
  /// Where the newest record of each type stands, of those with the key that is at hand.
  private var records: [UInt32: Int] = [:]
  private var recordKey: [UInt8] = []

  var isFull: Bool { bytes.count >= Self.fullBytes }
  var isEmpty: Bool { bytes.isEmpty }

  /// Adds the entry that an input is at.
  /// - Parameter entry: the entry as it is to be written.
  mutating func add(_ entry: LooseEntry, of input: EntryInput) throws(TidemarkError) {
    if entry.kind == .record { try replaceOlder(input) }
    entry.encode(to: &bytes)
    bytes.append(contentsOf: input.key)
    input.appendAttributes(to: &bytes)
    let start = bytes.count
    if entry.hasValue { try input.appendValue(to: &bytes) }
    guard bytes.count - start == entry.valueLength else {
      throw input.damage("a value of another length")
    }
  }

  /// Only the newest of the engine's own records of every type and key says anything. An older
  /// one of an earlier batch stays, to no harm.
  private mutating func replaceOlder(_ input: EntryInput) throws(TidemarkError) {
    if recordKey != input.key {
      recordKey = input.key
      records.removeAll()
    }
    let type = RecordType(rawValue: try input.attributes().recordType)
    // Records of other types may be many with the same name.
    guard type.isListed || type == .checkpoint else { return }
    if let older = records[type.rawValue] { LooseEntry.markUnwanted(in: &bytes, at: older) }
    records[type.rawValue] = bytes.count
  }

  /// The bytes so far, which are handed over.
  mutating func takeBytes() -> [UInt8] {
    let taken = bytes
    bytes = []
    bytes.reserveCapacity(Self.fullBytes + (256 << 10))
    records.removeAll()
    return taken
  }
}
