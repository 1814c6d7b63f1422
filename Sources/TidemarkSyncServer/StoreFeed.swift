package import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// A feed that is the log of a store: an offset is a sequence, an epoch is the store's.
///
/// Entries of class `cache` and touches are no part of the feed; records are passed over. What
/// the store's own program writes is, with the store's replica as its writer.
package final class StoreFeed: Feed {
  let engine: Engine
  /// Kept so that it stays open; nil where the engine is all there is.
  private let store: Store?
  let records: Lock<RecordTable>
  package let leases = Lock(FeedLeases())
  package let uploads: Lock<UploadTable>
  package let arriving: Lock<ArrivingAttachments>
  /// Held while something is appended; what appending needs to know, decoded.
  let appending = Lock(Known())
  /// Readers that go on where they stopped before.
  let readers = Lock<[FeedReader]>([])
  /// Told of entries by this feed itself; nil where the store's own program may write, too.
  let news: Observers?

  /// Opens the store in a directory.
  package convenience init(
    at path: String, configuration: Store.Configuration
  ) throws(TidemarkError) {
    let store = try Store.openBlocking(at: path, configuration: configuration)
    try self.init(store.engine, store, Observers())
  }

  /// A feed over what is open; closing the feed closes it.
  package init(
    _ engine: Engine, _ store: Store? = nil, _ news: Observers? = nil
  ) throws(TidemarkError) {
    self.engine = engine
    self.store = store
    self.news = news
    records = Lock(try RecordTable(engine))
    uploads = Lock(UploadTable())
    arriving = Lock(try ArrivingAttachments(engine))
    try writeCheckpointIfDue()
    let found = try UploadTable(self)
    uploads.withLock { $0 = found }
  }

  /// Records that are decoded already.
  struct Known: Sendable {
    /// Most marks, and most verdicts of one.
    private static let mostMarks = 1_024
    private static let mostVerdicts = 64

    var marks: [ReplicaID: FeedMark] = [:]
    var policies: PolicyTable?

    mutating func keep(_ mark: FeedMark, of replica: ReplicaID) {
      marks[replica] = nil
      guard mark.mark.verdicts.count <= Self.mostVerdicts else { return }
      if marks.count >= Self.mostMarks { marks = [:] }
      marks[replica] = mark
    }
  }

  package func mark(of replica: ReplicaID) throws(TidemarkError) -> FeedMark {
    try appending.withLock { (known: inout Known) throws(TidemarkError) in
      try mark(of: replica, &known)
    }
  }

  package func policies() throws(TidemarkError) -> PolicyTable {
    try appending.withLock { (known: inout Known) throws(TidemarkError) in try policies(&known) }
  }

  func policies(_ known: inout Known) throws(TidemarkError) -> PolicyTable {
    if let policies = known.policies { return policies }
    let policies = try PolicyTable(self)
    known.policies = policies
    return policies
  }

  func mark(of replica: ReplicaID, _ known: inout Known) throws(TidemarkError) -> FeedMark {
    // It may be gone if the store was suspended and resumed.
    if let mark = known.marks[replica], try position(of: mark.position.offset) == mark.position {
      return mark
    }
    guard let record = try record(.feedMark, key: replica.bytes) else { return FeedMark() }
    let mark = try FeedMark(record.value, at: record.position)
    known.keep(mark, of: replica)
    return mark
  }

  package var id: ReplicaID { ReplicaID(padding: engine.storeID) }
  package var contents: Engine? { engine }
  package var now: Timestamp { engine.environment.clock.now() }

  package func bounds() throws(TidemarkError) -> FeedBounds {
    let bounds = try engine.bounds()
    return FeedBounds(
      range: Self.range(bounds), durable: bounds.durable,
      historyFrom: bounds.historyFrom > 1 ? bounds.historyFrom : 0)
  }

  package func settle(through position: Position) throws(TidemarkError) {
    let bounds = try engine.bounds()
    // The offset may be another entry's by now, if the store was suspended and resumed.
    guard self.position(of: position.offset, bounds) == position else {
      throw TidemarkError(.unknownOutcome, "what was appended was lost before it was on the disk")
    }
    if position.offset > bounds.durable {
      try engine.sync(through: position.offset, of: bounds.lineage)
    }
  }

  static func range(_ bounds: LogBounds) -> FeedRange {
    var epochs = bounds.epochs.map { FeedEpoch(epoch: $0.epoch, firstOffset: $0.firstSequence) }
    // The oldest epochs may have gone from the list; their offsets need a place in it still, and
    // the list stays as long as an answer may have it.
    if let first = epochs.first, first.firstOffset > 1 {
      if epochs.count == Limits.epochs { epochs.removeFirst() }
      epochs.insert(FeedEpoch(epoch: 0, firstOffset: 1), at: 0)
    }
    let dropped = PlantedSyncBug.isOn(.deletesNotKept) ? 0 : bounds.droppedThrough
    return FeedRange(epochs: epochs, head: bounds.visible, truncatedThrough: dropped)
  }

  /// Where a sequence stands, durable or not yet.
  func position(of sequence: UInt64) throws(TidemarkError) -> Position {
    position(of: sequence, try engine.bounds())
  }

  private func position(of sequence: UInt64, _ bounds: LogBounds) -> Position {
    // Nearly always it is of this opening.
    if let last = bounds.epochs.last, last.firstSequence <= sequence, sequence <= bounds.visible {
      return Position(epoch: last.epoch, offset: sequence)
    }
    return Self.range(bounds).position(ofOffset: sequence)
  }

  package func keepDeletes(behind offset: UInt64?) throws(TidemarkError) {
    if PlantedSyncBug.isOn(.deletesNotKept) { return }
    engine.keepDeletes(above: offset)
  }

  package func observe(_ body: @escaping @Sendable () -> Void) -> Int {
    news?.observe(body) ?? engine.observe(body)
  }

  package func stopObserving(_ token: Int) {
    if let news { news.stopObserving(token) } else { engine.stopObserving(token) }
  }

  package func close() throws(TidemarkError) {
    readers.withLock { $0 = [] }
    // So that the next opening has little to read.
    try? records.withLock { (table: inout RecordTable) throws(TidemarkError) in
      if table.isWorthListing { try table.writeCheckpoint(durability: .buffered) }
    }
    if let store { try store.blocking.close() } else { try engine.close() }
  }
}

extension StoreFeed {
  package func space(from minimum: Int) throws(TidemarkError) -> LogSpace {
    try engine.space(from: minimum)
  }

  private static let ownRecords: Set<RecordType> = [
    .feedMark, .feedLease, .feedPolicy, .feedUpload,
  ]

  package func compact(
    unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary {
    let engine = engine
    let records = records
    // A loser goes with the history that it is part of.
    let historyFrom = Lock<UInt64?>(nil)
    let durable = Lock<UInt64>(0)
    return CompactionSummary(
      try engine.compact(
        CompactionOptions(shouldStop: shouldStop) { name, sequence in
          if name.type == .loser {
            let limit = historyFrom.withLock { known in
              known = known ?? (try? engine.bounds())?.historyFrom ?? 0
              return known ?? 0
            }
            return limit > 1 && sequence <= limit
          }
          guard Self.ownRecords.contains(name.type) else { return false }
          let newest = records.withLock { table in
            // Not known to the table yet: it stays.
            sequence <= table.through ? table.sequence(of: name.type, key: name.key) ?? 0 : sequence
          }
          // A cut of the power would take a newer mark with it that is not on the disk, and the one
          // before is gone then. A name that was taken away can go early: its owner begins anew.
          return newest != sequence
            && durable.withLock { known in
              if known < newest { known = (try? engine.bounds())?.durable ?? 0 }
              return newest <= known
            }
        }))
  }
}
