package import Tidemark
package import TidemarkEngine
package import TidemarkSyncProtocol

/// A feed that is the log of a store: offsets are its sequences, epochs are its epochs.
///
/// Entries of class `cache`, touches and records are not part of the feed. Entries of the store's
/// own program are, with the store's replica id as their writer.
package final class StoreFeed: Feed, FeedUpkeep {
  let engine: Engine
  /// Retained so that the store stays open; nil where only an engine was given.
  private let store: Store?
  let records: Lock<RecordTable>
  /// Lock order: this one before `appending`.
  let leases: Lock<FeedLeases>
  let uploads: StoreContents
  /// Held while anything is appended: entries and the records beside them.
  private let appending = Lock(())
  /// Changed only while `appending` is held.
  private let policies: Lock<PolicyTable>
  /// Readers of earlier pages, which can go on where they stopped.
  let readers = Lock<[FeedReader]>([])
  /// Notified by this feed's appends. Nil where the store's program may write: the engine notifies.
  private let news: Observers?

  /// Opens the store in a directory.
  package convenience init(
    at path: String, configuration: Store.Configuration
  ) throws(TidemarkError) {
    let store = try Store.openBlocking(at: path, configuration: configuration)
    try self.init(store.engine, store, Observers())
  }

  /// A feed over an open store or engine; closing the feed closes that.
  package init(
    _ engine: Engine, _ store: Store? = nil, _ news: Observers? = nil
  ) throws(TidemarkError) {
    self.engine = engine
    self.store = store
    self.news = news
    let table = try RecordTable(engine.reader)
    records = Lock(table)
    leases = Lock(try FeedLeases(table))
    var policies = PolicyTable()
    for prefix in table.keys(of: .feedPolicy) {
      guard let value = try table.value(of: .feedPolicy, key: prefix),
        let sequence = table.sequence(of: .feedPolicy, key: prefix)
      else { continue }
      try policies.set(value, for: prefix, at: sequence)
    }
    self.policies = Lock(policies)
    uploads = try StoreContents(engine)
    try writeCheckpointIfDue()
    leases.withLock { $0.keepDeletes(self) }
  }

  package var id: ReplicaID { ReplicaID(padding: engine.reader.storeID) }
  package var contents: (any FeedContents)? { uploads }
  package var judgesInTurn: Bool { true }
  package var unreadableUploads: [TidemarkError] { uploads.unreadable }
  /// In milliseconds since 1970.
  var now: UInt64 { engine.environment.clock.now().sinceEpoch }

  package func look(_ question: FeedQuestion) throws(TidemarkError) -> FeedView {
    let epochs = try engine.reader.bounds().epochs
    var mark = FeedMark()
    var lease: FeedLease?
    if let replica = question.replica {
      mark = try appending.withLock { _ throws(TidemarkError) in try self.mark(of: replica) }
      lease = leases.withLock { $0.lease(of: replica) }
    }
    let policies = policies.withLock { $0 }
    let states = try states(of: question.keys)
    // Read last, so that everything in the view is within its range.
    let bounds = try engine.reader.bounds()
    // A suspended store was resumed, which begins an epoch: positions may be of the one before.
    guard bounds.epochs == epochs else { return try look(question) }
    var view = FeedView(
      range: Self.range(bounds), durable: bounds.durable,
      historyFrom: bounds.historyFrom > 1 ? bounds.historyFrom : 0, now: now, policies: policies)
    (view.mark, view.lease, view.states) = (mark, lease, states)
    return view
  }

  private func mark(of replica: ReplicaID) throws(TidemarkError) -> FeedMark {
    try records.withLock { (table: inout RecordTable) throws(TidemarkError) -> FeedMark in
      guard let value = try table.value(of: .feedMark, key: replica.bytes),
        let sequence = table.sequence(of: .feedMark, key: replica.bytes)
      else { return FeedMark() }
      return try FeedMark(value, at: try position(of: sequence))
    }
  }

  /// What the store has of its feed's replicas: the record of the mark beside it, and the lease.
  package func replicaRecords() throws(TidemarkError) -> [(
    id: ReplicaID, mark: (mark: FeedMark, record: [UInt8])?, lease: FeedLease?
  )] {
    let table = records.withLock { $0 }
    let known = leases.withLock { $0.rows }
    let ids = Set(known.keys).union(table.keys(of: .feedMark).compactMap { ReplicaID($0) })
    return try ids.sorted().map { (id) throws(TidemarkError) in
      let record = try table.value(of: .feedMark, key: id.bytes)
      let mark = try mark(of: id)
      return (id, record.map { (mark, $0) }, known[id]?.lease)
    }
  }

  func hasMark(of replica: ReplicaID) -> Bool {
    records.withLock { $0.sequence(of: .feedMark, key: replica.bytes) != nil }
  }

  package func settle(through position: FeedPosition) throws(TidemarkError) {
    let bounds = try engine.reader.bounds()
    // If the store was suspended and resumed, the offset may be that of another entry.
    guard self.position(of: position.offset, bounds) == position else {
      throw TidemarkError(.unknownOutcome, "what was appended was lost before it was on the disk")
    }
    if position.offset > bounds.durable {
      try engine.writer.sync(through: position.offset, of: bounds.epoch(of: position.offset))
    }
  }

  static func range(_ bounds: LogBounds) -> FeedRange {
    var epochs = bounds.epochs.map { FeedEpoch(epoch: $0.epoch, firstOffset: $0.firstSequence) }
    // A log drops its oldest epochs from the list; their offsets count as epoch 0 then. The list
    // must not get longer than a message allows.
    if let first = epochs.first, first.firstOffset > 1 {
      if epochs.count == Limits.epochs { epochs.removeFirst() }
      epochs.insert(FeedEpoch(epoch: 0, firstOffset: 1), at: 0)
    }
    let dropped = PlantedSyncBug.isOn(.deletesNotKept) ? 0 : bounds.droppedThrough
    return FeedRange(epochs: epochs, head: bounds.visible, truncatedThrough: dropped)
  }

  /// The position of a sequence, durable or not.
  func position(of sequence: UInt64) throws(TidemarkError) -> FeedPosition {
    position(of: sequence, try engine.reader.bounds())
  }

  private func position(of sequence: UInt64, _ bounds: LogBounds) -> FeedPosition {
    // Nearly always it was written since the log was opened.
    if let last = bounds.epochs.last, last.firstSequence <= sequence, sequence <= bounds.visible {
      return FeedPosition(epoch: last.epoch, offset: sequence)
    }
    return Self.range(bounds).position(ofOffset: sequence)
  }

  package func observe(_ body: @escaping @Sendable () -> Void) -> Int {
    news?.observe(body) ?? engine.observe(body)
  }

  package func stopObserving(_ token: Int) {
    if let news { news.stopObserving(token) } else { engine.stopObserving(token) }
  }

  package func close() throws(TidemarkError) {
    readers.withLock { $0 = [] }
    // A list of the newest records makes the next opening quick.
    try? records.withLock { (table: inout RecordTable) throws(TidemarkError) in
      if table.isWorthListing { try list(&table) }
    }
    if let store { try store.blocking.close() } else { try engine.close() }
  }
}

extension StoreFeed {
  package func space(from minimum: Int) throws(TidemarkError) -> LogSpace {
    var space = try engine.compactor.space(from: minimum)
    // The next compaction deletes them, and may have no other reason to run.
    let old = uploads.oldBytes
    space.log += old
    if old >= minimum { space.reclaimable += old }
    return space
  }

  private static let ownRecords: Set<RecordType> = [.feedMark, .feedLease, .feedPolicy]

  package func compact(
    leaseSeconds: UInt32?, unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary {
    do throws(TidemarkError) {
      try leases.withLock { (leases: inout FeedLeases) throws(TidemarkError) in
        try leases.prepareCompaction(leaseSeconds: leaseSeconds, self)
      }
    } catch {
      // On a full disk a compaction must go on, as it frees space.
      guard error.code == .noSpace else { throw error }
    }
    uploads.dropOld()
    let (engine, records) = (engine, records)
    return CompactionSummary(
      try engine.compact(
        CompactionOptions(shouldStop: shouldStop) { name, sequence in
          guard let bounds = try? engine.reader.bounds() else { return false }
          // A losing change is history, and is dropped as far as history is.
          if name.type == .loser { return bounds.historyFrom > 1 && sequence <= bounds.historyFrom }
          guard Self.ownRecords.contains(name.type) else { return false }
          let newest = records.withLock { table in
            // A record that the table does not know yet is kept.
            sequence <= table.through ? table.sequence(of: name.type, key: name.key) ?? 0 : sequence
          }
          // A superseded mark is dropped only once the newer one is durable, or a power failure
          // could take both. A removed record may go early: its replica begins anew.
          return newest != sequence && newest <= bounds.durable
        }))
  }
}

extension StoreFeed {
  // MARK: Records

  /// Appends records in one commit; an empty value removes the record of its key.
  /// - Returns: the position of the last.
  @discardableResult
  func append(
    _ type: RecordType, _ records: [(key: [UInt8], value: [UInt8])]
  ) throws(TidemarkError) -> FeedPosition {
    var batch = OperationBatch()
    for record in records {
      try RecordTable.add(type, key: record.key, value: record.value, to: &batch)
    }
    let commits = batch
    return try appending.withLock { _ throws(TidemarkError) in
      let position = end(of: try commit(commits))
      for record in records where type == .feedPolicy {
        try policies.withLock { (policies) throws(TidemarkError) in
          try policies.set(record.value, for: record.key, at: position.offset)
        }
      }
      return position
    }
  }

  package func setLease(
    _ lease: FeedLease?, of replica: ReplicaID, after view: FeedView, most: Int, writes: Bool
  ) throws(TidemarkError) {
    try leases.withLock { (leases: inout FeedLeases) throws(TidemarkError) in
      guard leases.rows[replica]?.lease == view.lease else { return }
      try leases.set(lease, of: replica, most: most, writes: writes, self)
    }
  }

  package func setPolicy(
    _ policy: ConflictPolicy?, prefix: [UInt8]
  ) throws(TidemarkError) -> FeedPosition {
    try append(.feedPolicy, [(prefix, PolicyTable.encode(policy))])
  }

  /// Appends a list of the newest records, for a quick opening. It needs no sync: the log has all.
  private func list(_ records: inout RecordTable) throws(TidemarkError) {
    try records.writeCheckpoint { (batch) throws(TidemarkError) in
      try engine.commit(batch, durability: .buffered)
    }
  }

  /// Appends a new list after so many records that the next opening would be slow.
  func writeCheckpointIfDue() throws(TidemarkError) {
    try records.withLock { (table: inout RecordTable) throws(TidemarkError) in
      if table.isCheckpointDue { try list(&table) }
    }
  }

  /// Commits a batch without its sync; callers wait for that in `settle`, without any lock.
  @discardableResult
  private func commit(_ batch: OperationBatch) throws(TidemarkError) -> CommitResult {
    let result = try engine.stage(batch, durability: .durable)
    try records.withLock { (table: inout RecordTable) throws(TidemarkError) in
      try table.note(batch, result)
    }
    // The batch is committed, so a failure of the list must not fail the call.
    try? writeCheckpointIfDue()
    return result
  }

  // MARK: Batches

  package func append(
    _ judged: DecidedBatch, after view: FeedView
  ) throws(TidemarkError) -> FeedMark? {
    let replica = judged.request.replica
    let appended = try appending.withLock { _ throws(TidemarkError) -> FeedMark? in
      let mark = try mark(of: replica).mark
      guard mark.precedes(judged.request) || PlantedSyncBug.isOn(.markNotChecked),
        policies.withLock({ $0.revision }) == view.policies.revision,
        try engine.reader.bounds().epochs.last?.epoch ?? 0 == view.epoch
      else { return nil }
      do throws(TidemarkError) { return try commit(judged) } catch {
        guard error.code == .conflict else { throw error }
        return nil
      }
    }
    guard appended != nil else { return nil }
    if judged.hasNews { news?.notify() }
    try leases.withLock { (leases) throws(TidemarkError) in try leases.notePush(of: replica, self) }
    return appended
  }

  private func commit(_ judged: DecidedBatch) throws(TidemarkError) -> FeedMark {
    var batch = OperationBatch()
    for entry in judged.entries { try add(entry, of: judged, to: &batch) }
    batch.mayLackAttachments = PlantedSyncBug.isOn(.attachmentNotAwaited)
    if PlantedSyncBug.isOn(.markApart) {
      try commit(batch)
      batch = OperationBatch()
    }
    let record = try judged.markRecord()
    try RecordTable.add(
      .feedMark, key: judged.request.replica.bytes, value: record, to: &batch)
    let result = try commit(batch)
    guard result.applied == batch.count else {
      throw TidemarkError(
        .unknownOutcome, "the log took another number of entries than the batch has")
    }
    return try FeedMark(record, at: end(of: result))
  }

  /// The position of the last entry of a commit.
  private func end(of result: CommitResult) -> FeedPosition {
    FeedPosition(epoch: result.epoch, offset: result.sequences.upperBound - 1)
  }

  private func add(
    _ entry: DecidedBatch.Entry, of judged: DecidedBatch, to batch: inout OperationBatch
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
