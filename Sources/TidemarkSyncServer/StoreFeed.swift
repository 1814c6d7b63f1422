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
    records = Lock(try RecordTable(engine.reader))
    arriving = Lock(try ArrivingAttachments(engine))
    try writeCheckpointIfDue()
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

  package var id: ReplicaID { ReplicaID(padding: engine.reader.storeID) }
  package var contents: Engine? { engine }
  package var now: Timestamp { engine.environment.clock.now() }

  package func bounds() throws(TidemarkError) -> FeedBounds {
    let bounds = try engine.reader.bounds()
    return FeedBounds(
      range: Self.range(bounds), durable: bounds.durable,
      historyFrom: bounds.historyFrom > 1 ? bounds.historyFrom : 0)
  }

  package func settle(through position: Position) throws(TidemarkError) {
    let bounds = try engine.reader.bounds()
    // The offset may be another entry's by now, if the store was suspended and resumed.
    guard self.position(of: position.offset, bounds) == position else {
      throw TidemarkError(.unknownOutcome, "what was appended was lost before it was on the disk")
    }
    if position.offset > bounds.durable {
      try engine.writer.sync(through: position.offset, of: bounds.epoch(of: position.offset))
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
    position(of: sequence, try engine.reader.bounds())
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
    engine.reader.keepDeletes(above: offset)
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
      if table.isWorthListing { try list(&table) }
    }
    if let store { try store.blocking.close() } else { try engine.close() }
  }
}

extension StoreFeed {
  package func space(from minimum: Int) throws(TidemarkError) -> LogSpace {
    try engine.compactor.space(from: minimum)
  }

  private static let ownRecords: Set<RecordType> = [.feedMark, .feedLease, .feedPolicy]

  package func compact(
    unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary {
    let (engine, records) = (engine, records)
    return CompactionSummary(
      try engine.compact(
        CompactionOptions(shouldStop: shouldStop) { name, sequence in
          guard let bounds = try? engine.reader.bounds() else { return false }
          // A loser goes with the history that it is part of.
          if name.type == .loser { return bounds.historyFrom > 1 && sequence <= bounds.historyFrom }
          guard Self.ownRecords.contains(name.type) else { return false }
          let newest = records.withLock { table in
            // Not known to the table yet: it stays.
            sequence <= table.through ? table.sequence(of: name.type, key: name.key) ?? 0 : sequence
          }
          // A cut of the power would take a newer mark with it that is not on the disk, and the one
          // before is gone then. A name that was taken away can go early: its owner begins anew.
          return newest != sequence && newest <= bounds.durable
        }))
  }
}

extension StoreFeed {
  // MARK: Records

  package func record(_ type: RecordType, key: [UInt8]) throws(TidemarkError) -> FeedRecord? {
    try records.withLock { (table: inout RecordTable) throws(TidemarkError) -> FeedRecord? in
      guard let value = try table.value(of: type, key: key),
        let sequence = table.sequence(of: type, key: key)
      else { return nil }
      return (value, try position(of: sequence))
    }
  }

  package func recordKeys(of type: RecordType) -> [[UInt8]] {
    records.withLock { $0.keys(of: type) }
  }

  @discardableResult
  package func append(
    _ type: RecordType, _ records: [(key: [UInt8], value: [UInt8])]
  ) throws(TidemarkError) -> Position {
    var batch = OperationBatch()
    for record in records {
      try RecordTable.add(type, key: record.key, value: record.value, to: &batch)
    }
    let commits = batch
    return try appending.withLock { (known: inout Known) throws(TidemarkError) in
      let position = end(of: try commit(commits))
      for record in records where type == .feedPolicy {
        let policy = PolicyTable.decode(record.value)
        known.policies?.set(policy, for: record.key, at: position.offset)
      }
      return position
    }
  }

  /// Lists the newest records. Buffered: it says nothing that the log would not say, too.
  private func list(_ records: inout RecordTable) throws(TidemarkError) {
    try records.writeCheckpoint { (batch) throws(TidemarkError) in
      try engine.commit(batch, durability: .buffered)
    }
  }

  /// Lists the records anew when so many have come that the next opening would be slow.
  func writeCheckpointIfDue() throws(TidemarkError) {
    try records.withLock { (table: inout RecordTable) throws(TidemarkError) in
      if table.isCheckpointDue { try list(&table) }
    }
  }

  /// Commits a batch but for the sync, for which its caller waits without any lock.
  @discardableResult
  private func commit(_ batch: OperationBatch) throws(TidemarkError) -> CommitResult {
    let result = try engine.stage(batch, durability: .durable)
    try records.withLock { (table: inout RecordTable) throws(TidemarkError) in
      try table.note(batch, result)
    }
    // The batch is committed, whatever becomes of this.
    try? writeCheckpointIfDue()
    return result
  }

  // MARK: Batches

  package func append(_ judged: JudgedBatch) throws(TidemarkError) -> AppendOutcome {
    let outcome = try appending.withLock {
      (known: inout Known) throws(TidemarkError) -> AppendOutcome in
      let mark = try mark(of: judged.request.replica, &known)
      guard mark.mark.precedes(judged.request) || PlantedSyncBug.isOn(.markNotChecked) else {
        return .markIs(mark)
      }
      guard try policies(&known).revision == judged.policies else { return .conflict }
      do throws(TidemarkError) { return .appended(try commit(judged, &known)) } catch {
        if error.code == .conflict { return .conflict }
        throw error
      }
    }
    if case .appended = outcome, judged.hasNews { news?.notify() }
    return outcome
  }

  private func commit(
    _ judged: JudgedBatch, _ known: inout Known
  ) throws(TidemarkError) -> FeedMark {
    var batch = OperationBatch()
    for entry in judged.entries { try add(entry, of: judged, to: &batch) }
    batch.mayLackAttachments = PlantedSyncBug.isOn(.attachmentNotAwaited)
    if PlantedSyncBug.isOn(.markApart) {
      try commit(batch)
      batch = OperationBatch()
    }
    let replica = judged.request.replica
    let record = judged.markRecord
    try RecordTable.add(.feedMark, key: replica.bytes, value: record, to: &batch)
    let result = try commit(batch)
    guard result.applied == batch.count else {
      throw TidemarkError(
        .unknownOutcome, "the log took another number of entries than the batch has")
    }
    let mark = try FeedMark(record, at: end(of: result))
    known.keep(mark, of: replica)
    return mark
  }

  /// The position of the last entry of a commit.
  private func end(of result: CommitResult) -> Position {
    Position(epoch: result.epoch, offset: result.sequences.upperBound - 1)
  }

  private func add(
    _ entry: JudgedBatch.Entry, of judged: JudgedBatch, to batch: inout OperationBatch
  ) throws(TidemarkError) {
    let change = judged.request.changes[entry.change]
    var attributes = judged.attributes(of: entry)
    let value = change.content.value.rawSpan
    guard case .applies(let revision) = entry.kind else {
      attributes.recordType = RecordType.loser.rawValue
      try batch.add(.record, key: change.key.rawSpan, value: value, attributes: attributes)
      return
    }
    let condition =
      switch revision {
      case nil: -1
      case 0?: batch.addCondition(.absent)
      case let sequence?: batch.addCondition(.sequence(sequence))
      }
    if change.kind == .put {
      let labels = try batch.addLabelSet(judged.labelSets[entry.change])
      try batch.add(
        .put, key: change.key.rawSpan, value: value, labelSet: labels, attributes: attributes,
        condition: condition)
    } else {
      try batch.add(
        .delete, key: change.key.rawSpan, attributes: attributes, condition: condition,
        isForced: true)
    }
  }
}
