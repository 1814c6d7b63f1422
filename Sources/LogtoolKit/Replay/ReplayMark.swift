internal import TidemarkEngine

/// How far one store has been replayed into another.
///
/// The target says it itself: the newest origin among its entries. But a compaction of the target
/// may drop the very entry that carried it. So the source's log keeps a copy, an engine record
/// with the target's id as its key:
/// ```
/// 0 u64 mark   8 u64 epoch and 16 u64 sequence of the target when the mark was reached
/// ```
/// The copy counts if the target still is a continuation of that state. If it is not, having been
/// restored from a backup, the target alone is believed.
struct ReplayMark: Equatable {
  /// The type of the engine record.
  static let recordType: UInt32 = 1

  /// The newest sequence of the source that the target has.
  var sequence: UInt64
  /// Where the target was then.
  var targetEpoch: UInt64
  var targetSequence: UInt64

  init(sequence: UInt64, target: Engine) throws(TidemarkError) {
    self.sequence = sequence
    targetSequence = target.lastSequence
    targetEpoch = try target.epoch(of: targetSequence) ?? 0
  }

  init?(decoding bytes: RawSpan) {
    guard bytes.byteCount == 24, let sequence = try? bytes.u64(at: 0),
      let epoch = try? bytes.u64(at: 8), let target = try? bytes.u64(at: 16)
    else { return nil }
    self.sequence = sequence
    targetEpoch = epoch
    targetSequence = target
  }

  private var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u64(sequence)
    writer.u64(targetEpoch)
    writer.u64(targetSequence)
    return writer.bytes
  }

  /// Writes the copy into the source's log.
  func record(in source: Engine, targetID: [UInt8]) throws(TidemarkError) {
    var attributes = EntryAttributes()
    attributes.recordType = Self.recordType
    let value = encoded
    var batch = OperationBatch()
    try batch.add(
      .record, key: targetID.rawSpan, value: value.rawSpan, attributes: attributes)
    try source.commit(batch, durability: .durable)
  }

  /// The sequence of the source that was replayed last.
  /// - Returns: 0 for none; and the copy, if there is one that counts.
  static func find(
    source: Engine, target: Engine
  ) throws(TidemarkError) -> (mark: UInt64, copy: ReplayMark?) {
    let seen = try newestOrigin(of: source.replicaID, in: target)
    guard let copy = try recorded(in: source, targetID: target.storeID),
      copy.targetSequence <= target.lastSequence,
      try target.epoch(of: copy.targetSequence) == copy.targetEpoch
    else { return (seen, nil) }
    return (max(seen, copy.sequence), copy)
  }

  /// The copy that a source's log keeps; nil when there is none.
  private static func recorded(
    in source: Engine, targetID: [UInt8]
  ) throws(TidemarkError) -> ReplayMark? {
    var walk = BackwardWalk(source, includesRecords: true)
    while var window = walk.next() {
      var found: ReplayMark?
      while let entry = try window.next() {
        guard entry.head.kind == .record, entry.key == targetID,
          try entry.attributes().recordType == recordType
        else { continue }
        let mark = try source.withValue(of: entry.sequence) { (value, _) throws(TidemarkError) in
          ReplayMark(decoding: value)
        }
        found = mark ?? found
      }
      if let found { return found }
    }
    return nil
  }

  /// The newest sequence of a replica among the origins of a store's entries; 0 for none.
  ///
  /// Replays send in sequence order, so the last entry of that origin has the newest one.
  private static func newestOrigin(
    of replica: [UInt8], in target: Engine
  ) throws(TidemarkError) -> UInt64 {
    var walk = BackwardWalk(target)
    while var window = walk.next() {
      var newest: UInt64 = 0
      while let entry = try window.next() {
        guard let origin = try entry.attributes().origin, origin.replica == replica else {
          continue
        }
        newest = max(newest, origin.sequence)
      }
      if newest > 0 { return newest }
    }
    return 0
  }
}

/// Goes through a log from its end, a stretch of sequences at a time: what was written last is
/// found without reading everything.
private struct BackwardWalk {
  private static let stretch: UInt64 = 65_536
  private let engine: Engine
  private let includesRecords: Bool
  private var end: UInt64

  init(_ engine: Engine, includesRecords: Bool = false) {
    self.engine = engine
    self.includesRecords = includesRecords
    end = engine.lastSequence
  }

  /// The next stretch towards the beginning, itself to be read forward; nil when there is none.
  mutating func next() -> LogCursor? {
    guard end > 0 else { return nil }
    let start = end - min(end, Self.stretch) + 1
    defer { end = start - 1 }
    return LogCursor(engine, from: start, through: end, includesRecords: includesRecords)
  }
}
