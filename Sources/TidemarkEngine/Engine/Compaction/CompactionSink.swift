/// Takes the entries that stay, in order, and writes them into a segment: what one thread does
/// while another reads and merges.
struct CompactionSink: Sendable {
  var writer: CompactedSegmentWriter
  private let labels: LabelSets
  /// By number of a set of labels: the writer's id for it; 0 while it has none.
  private var labelSetIDs: [UInt32] = [0]
  private var syncedLength = 0

  init(_ writer: CompactedSegmentWriter, labels: LabelSets) {
    self.writer = writer
    self.labels = labels
  }

  mutating func add(_ batch: [UInt8]) throws(LogReadError) {
    var start = 0
    while start < batch.count {
      let entry: LooseEntry
      do { entry = try LooseEntry(batch.rawSpan, at: start) } catch { throw .format(error) }
      try add(entry, batch.rawSpan)
      start += entry.byteCount
    }
  }

  private mutating func add(_ entry: LooseEntry, _ bytes: RawSpan) throws(LogReadError) {
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

  /// Syncs what was written so far, once that is enough.
  mutating func sync() throws(LogReadError) {
    guard writer.length - syncedLength >= Limits.compactionSyncBytes else { return }
    syncedLength = writer.length
    try writer.syncSoFar()
  }
}

/// The entries that stay, on their way to a sink.
///
/// Only the newest of the engine's own records of every type and key says anything. So those are
/// held back until another key comes, which is soon: a merge brings all of a key together.
struct SurvivorBatch {
  /// Handed over once it has so many bytes.
  static let fullBytes = 2 << 20

  private(set) var bytes: [UInt8] = []
  /// The newest record of each type of the key at hand, and what comes between them: the type is
  /// nil where it is no record that a newer one replaces.
  private var held: [(type: RecordType?, bytes: [UInt8])] = []
  private var heldKey: [UInt8] = []
  private var heldBytes = 0

  var isFull: Bool { bytes.count >= Self.fullBytes }

  /// Adds the entry that an input is at.
  /// - Parameter entry: the entry as it is to be written.
  mutating func add(_ entry: LooseEntry, of input: EntryInput) throws(TidemarkError) {
    if !held.isEmpty, heldKey != input.key { release() }
    let type = entry.head.kind == .record ? try replaceableType(of: input) : nil
    if type == nil, held.isEmpty || heldBytes >= Self.fullBytes {
      // Many versions of a program's key with the name of a record stay out of memory.
      release()
      return try Self.append(entry, of: input, to: &bytes)
    }
    if let type {
      heldKey = input.key
      if let older = held.firstIndex(where: { $0.type == type }) {
        heldBytes -= held.remove(at: older).bytes.count
      }
    }
    var own = (type: type, bytes: [UInt8]())
    try Self.append(entry, of: input, to: &own.bytes)
    heldBytes += own.bytes.count
    held.append(own)
  }

  /// The type of a record; nil for types of which many with the same name count.
  private func replaceableType(of input: EntryInput) throws(TidemarkError) -> RecordType? {
    let type = RecordType(rawValue: try input.attributes().recordType)
    return type.isListed || type == .checkpoint ? type : nil
  }

  private static func append(
    _ entry: LooseEntry, of input: EntryInput, to bytes: inout [UInt8]
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

  /// Adds what was held back: nothing that replaces it comes any more.
  mutating func release() {
    for one in held { bytes += one.bytes }
    held.removeAll()
    heldBytes = 0
  }

  /// The bytes so far, which are handed over.
  mutating func takeBytes() -> [UInt8] {
    let taken = bytes
    bytes = []
    bytes.reserveCapacity(Self.fullBytes + (256 << 10))
    return taken
  }
}
