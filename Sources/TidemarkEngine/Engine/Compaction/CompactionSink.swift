/// Writes the entries that a compaction keeps, in order, into the new segment. `CompactionRewrite`
/// owns it behind a lock: one thread writes while another reads and merges.
struct CompactionSink: Sendable {
  var writer: CompactedSegmentWriter
  private let labels: LabelSets
  /// By number of a set in `labels`: the writer's id for the set; 0 while it has none.
  private var labelSetIDs: [UInt32] = [0]
  private var writtenBackLength = 0

  init(_ writer: CompactedSegmentWriter, labels: LabelSets) {
    (self.writer, self.labels) = (writer, labels)
  }

  /// - Parameter batch: entries of a ``SurvivorBatch``, one behind the other.
  mutating func add(_ batch: [UInt8]) throws(LogReadError) {
    var start = 0
    while start < batch.count {
      let entry: MergeEntry
      do { entry = try MergeEntry(batch.rawSpan, at: start) } catch { throw .format(error) }
      try add(entry, batch.rawSpan)
      start += entry.byteCount
    }
  }

  private mutating func add(_ entry: MergeEntry, _ bytes: RawSpan) throws(LogReadError) {
    var written = FrameBuilder.Entry(rewriting: entry.head)
    written.labelSetID = labelSetID(entry.labelSet)
    try writer.add(
      written, key: bytes.extracting(entry.keyPlace),
      value: entry.head.hasValue ? bytes.extracting(entry.valuePlace) : nil,
      attributes: bytes.extracting(entry.attributesPlace),
      isSuperseded: entry.isHistory)
  }

  private mutating func labelSetID(_ number: UInt32) -> UInt32 {
    guard number > 0 else { return 0 }
    while labelSetIDs.count <= Int(number) { labelSetIDs.append(0) }
    if labelSetIDs[Int(number)] == 0 {
      labelSetIDs[Int(number)] = writer.labelSetID(for: labels.labels(number))
    }
    return labelSetIDs[Int(number)]
  }

  /// Hands the file's bytes to the drive if it has grown enough since the last time.
  mutating func writeBack() throws(LogReadError) {
    guard writer.length - writtenBackLength >= Limits.compactionSyncBytes else { return }
    writtenBackLength = writer.length
    try writer.writeBack()
  }
}

/// Entries that a compaction keeps, each as a ``MergeEntry``, on the way to a ``CompactionSink``.
///
/// Of the engine's records (its own entries) with the same type and key only the newest counts. So
/// records are held back until another key comes: a merge gives all entries of a key in a row.
struct SurvivorBatch {
  /// A batch is handed over once it has so many bytes.
  static let fullBytes = 2 << 20

  private(set) var bytes: [UInt8] = []
  /// The newest record of each type under `heldKey`, and other entries between and behind them, in
  /// order; their type is nil, and no newer one replaces them.
  private var held: [(type: RecordType?, bytes: [UInt8])] = []
  private var heldKey: [UInt8] = []
  private var heldBytes = 0

  var isFull: Bool { bytes.count >= Self.fullBytes }

  /// Adds the entry that an input is at.
  /// - Parameter entry: the entry as it is to be written.
  mutating func add(_ entry: MergeEntry, of input: EntryInput) throws(TidemarkError) {
    if !held.isEmpty, heldKey != input.key { release() }
    let type = entry.head.kind == .record ? try replaceableType(of: input) : nil
    if type == nil, held.isEmpty || heldBytes >= Self.fullBytes {
      // A program's key may equal that of a record: its many versions must not fill memory.
      release()
      return try Self.append(entry, of: input, to: &bytes)
    }
    if let type {
      heldKey = input.key
      if let older = held.firstIndex(where: { $0.type == type }) {
        heldBytes -= held.remove(at: older).bytes.count
      }
    }
    var added = (type: type, bytes: [UInt8]())
    try Self.append(entry, of: input, to: &added.bytes)
    heldBytes += added.bytes.count
    held.append(added)
  }

  /// The type of a record; nil for types of which older records with the same key count, too.
  private func replaceableType(of input: EntryInput) throws(TidemarkError) -> RecordType? {
    let type = RecordType(rawValue: try input.attributes().recordType)
    return type.isListed || type == .checkpoint ? type : nil
  }

  private static func append(
    _ entry: MergeEntry, of input: EntryInput, to bytes: inout [UInt8]
  ) throws(TidemarkError) {
    entry.encode(to: &bytes)
    bytes.append(contentsOf: input.key)
    input.appendAttributes(to: &bytes)
    let start = bytes.count
    if entry.head.hasValue { try input.appendValue(to: &bytes) }
    guard bytes.count - start == entry.head.valueLength else {
      throw input.damage("a value of another length")
    }
  }

  /// Adds the entries that were held back.
  mutating func release() {
    for entry in held { bytes += entry.bytes }
    held.removeAll()
    heldBytes = 0
  }

  /// Takes the bytes, but for what is held back, and begins a new batch.
  mutating func takeBytes() -> [UInt8] {
    let taken = bytes
    bytes = []
    bytes.reserveCapacity(Self.fullBytes + (256 << 10))
    return taken
  }
}
