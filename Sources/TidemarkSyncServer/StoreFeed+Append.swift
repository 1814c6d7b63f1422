internal import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

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

  package func recordTime(_ type: RecordType, key: [UInt8]) throws(TidemarkError) -> Timestamp? {
    guard let sequence = records.withLock({ $0.sequence(of: type, key: key) }),
      let entry = try engine.entryIfKept(at: sequence)
    else { return nil }
    return HybridTime(entry.head.commitTime).timestamp
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
      if type == .feedPolicy {
        for record in records {
          known.policies?.set(
            PolicyTable.decode(record.value), for: record.key, at: position.offset)
        }
      }
      return position
    }
  }

  /// Lists the records anew when so many have come that the next opening would be slow.
  func writeCheckpointIfDue() throws(TidemarkError) {
    try records.withLock { (table: inout RecordTable) throws(TidemarkError) in
      // Buffered: it says nothing that the log would not say, too.
      if table.isCheckpointDue { try table.writeCheckpoint(durability: .buffered) }
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
    // Before the entries, whose places are counted back from the mark.
    for name in judged.uploads {
      try RecordTable.add(.feedUpload, key: name, value: [], to: &batch)
    }
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
