/// Finds the newest record of every name in a log. A *record* is an entry of the engine's own; its
/// type and key are its name. A record with an empty value takes its name away.
/// No index knows records. The table walks the log backwards when it is made, as far as the last
/// *checkpoint* (a record that lists the newest ones), and keeps names and sequences in memory;
/// values are read on demand. Compaction keeps the newest record of every name with its sequence,
/// so what a checkpoint lists stays true. There is no lock: the owner lets one thread in at a time.
package struct RecordTable: Sendable {
  /// A checkpoint is due after so many records, or as many as there are names if that is more.
  static let recordsPerCheckpoint = 1_000
  /// Or after so many entries.
  static let entriesPerCheckpoint: UInt64 = 65_536

  private let reader: Reader
  /// The sequence of the newest record, by type and key.
  private var newest: [RecordType: [[UInt8]: UInt64]] = [:]
  /// The table knows all records of the log up to here.
  package private(set) var through: UInt64 = 0
  /// `through` of the last checkpoint; 0 for none.
  private(set) var listedThrough: UInt64 = 0
  private var recordsSinceCheckpoint = 0
  /// Checkpoints that could not be decoded and were passed over.
  package private(set) var unreadableCheckpoints = 0

  /// Finds the records of a store.
  /// - Throws: what reading the log throws.
  package init(_ reader: Reader) throws(TidemarkError) {
    self.reader = reader
    var walk = RecordWalk(reader)
    try walk.run()
    through = walk.head
    listedThrough = walk.checkpoint?.through ?? 0
    recordsSinceCheckpoint = walk.found.count
    unreadableCheckpoints = walk.unreadable
    for row in walk.checkpoint?.rows ?? [] { set(row.name, row.sequence) }
    for (name, found) in walk.found { set(name, found.isRemoval ? nil : found.sequence) }
  }

  /// How many names there are.
  package var count: Int { newest.values.reduce(0) { $0 + $1.count } }

  /// The sequence of the newest record of a name; nil when there is none.
  package func sequence(of type: RecordType, key: [UInt8]) -> UInt64? { newest[type]?[key] }

  package func has(_ type: RecordType) -> Bool { newest[type]?.isEmpty == false }

  /// The keys of a type's records, in byte order.
  package func keys(of type: RecordType) -> [[UInt8]] {
    (newest[type] ?? [:]).keys.sorted { $0.rawSpan.compare(to: $1.rawSpan) < 0 }
  }

  /// The value of the newest record of a name; nil when there is none.
  /// - Throws: `damaged` when the log does not hold at its place what a checkpoint says.
  package func value(of type: RecordType, key: [UInt8]) throws(TidemarkError) -> [UInt8]? {
    guard let sequence = newest[type]?[key] else { return nil }
    guard let entry = try reader.entryIfKept(at: sequence), entry.head.kind == .record,
      entry.key == key, try entry.attributes().recordType == type.rawValue
    else {
      // A closed log finds no entry at all, which is no damage.
      if reader.isClosed { throw TidemarkError(.closed, "the store is closed") }
      throw TidemarkError(
        .damaged, "the log lacks a record that its list of records names; run verify",
        sequences: sequence...sequence)
    }
    return try reader.withValue(of: sequence) { (value, _) throws(TidemarkError) in
      [UInt8](copying: value)
    }
  }

  /// Adds a record to a batch; an empty value takes the name away.
  package static func add(
    _ type: RecordType, key: [UInt8], value: [UInt8], to batch: inout OperationBatch
  ) throws(TidemarkError) {
    var attributes = EntryAttributes()
    attributes.recordType = type.rawValue
    try batch.add(.record, key: key.rawSpan, value: value.rawSpan, attributes: attributes)
  }

  /// Takes up the records of a batch that the table's owner has committed.
  package mutating func note(_ batch: OperationBatch, _ result: CommitResult) throws(TidemarkError)
  {
    // The n-th operation has the n-th sequence only if each made an entry. And where others have
    // written since `through`, their records come first. Else the log itself is read.
    guard result.applied == batch.count, result.sequences.lowerBound == through + 1 else {
      return try catchUp()
    }
    for (index, operation) in batch.operations.enumerated() where operation.kind == .record {
      let attributes: EntryAttributes
      do { attributes = try EntryAttributes(decoding: batch.attributes(of: operation)) } catch {
        throw TidemarkError(.invalidArgument, error.reason, cause: error)
      }
      let name = RecordName(
        RecordType(rawValue: attributes.recordType), key: [UInt8](copying: batch.key(of: operation))
      )
      noteRecord(
        name, at: result.sequences.lowerBound + UInt64(index),
        isRemoval: operation.valueLength == 0)
    }
    through = result.sequences.upperBound - 1
  }

  /// Reads on to the end of the log, for records that others have written.
  package mutating func catchUp() throws(TidemarkError) {
    let head = reader.lastSequence
    guard through < head else { return }
    var cursor = LogCursor(reader, from: through + 1, through: head, includesRecords: true)
    while let entry = try cursor.next() {
      guard entry.head.kind == .record else { continue }
      let type = RecordType(rawValue: try entry.attributes().recordType)
      noteRecord(
        RecordName(type, key: entry.key), at: entry.sequence,
        isRemoval: entry.head.valueLength == 0)
    }
    through = head
  }

  private mutating func noteRecord(_ name: RecordName, at sequence: UInt64, isRemoval: Bool) {
    guard name.type.isListed else { return }
    recordsSinceCheckpoint += 1
    set(name, isRemoval ? nil : sequence)
  }

  private mutating func set(_ name: RecordName, _ sequence: UInt64?) {
    newest[name.type, default: [:]][name.key] = sequence
  }

  /// Whether so much has come since the last checkpoint that the next opening would be slow.
  package var isCheckpointDue: Bool {
    let count = count
    // Many names make a checkpoint large: then it comes less often, by as much.
    return recordsSinceCheckpoint >= max(Self.recordsPerCheckpoint, count)
      || through - listedThrough >= max(Self.entriesPerCheckpoint, 16 * UInt64(count))
  }

  /// Whether enough has come since the last checkpoint for one at closing.
  package var isWorthListing: Bool {
    recordsSinceCheckpoint >= 64 || through - listedThrough >= 4_096
  }

  /// Writes a checkpoint that lists all records, so that the next table need not walk behind it.
  /// - Returns: false when the list is too long for one record; then the table goes on without.
  @discardableResult
  package mutating func writeCheckpoint(
    _ commit: (OperationBatch) throws(TidemarkError) -> CommitResult
  ) throws(TidemarkError) -> Bool {
    try catchUp()
    var rows: [RecordCheckpoint.Row] = []
    for type in newest.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
      for key in keys(of: type) {
        guard let sequence = newest[type]?[key] else { continue }
        rows.append(RecordCheckpoint.Row(name: RecordName(type, key: key), sequence: sequence))
      }
    }
    let value = RecordCheckpoint(through: through, rows: rows).encoded
    guard value.count <= Limits.recordBytes else { return false }
    var batch = OperationBatch()
    try Self.add(.checkpoint, key: [], value: value, to: &batch)
    // Not what `through` is afterwards: the checkpoint says nothing of records that came after it.
    let listed = through
    let result = try commit(batch)
    listedThrough = listed
    recordsSinceCheckpoint = 0
    try note(batch, result)
    return true
  }
}
