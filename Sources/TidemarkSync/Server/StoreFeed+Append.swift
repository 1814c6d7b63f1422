package import TidemarkEngine

extension StoreFeed {
  // MARK: Records

  package func record(
    _ type: RecordType, key: [UInt8]
  ) throws(TidemarkError) -> FeedRecord? {
    try records.withLock { (table: inout RecordTable) throws(TidemarkError) -> FeedRecord? in
      guard let value = try table.value(of: type, key: key),
        let sequence = table.sequence(of: type, key: key)
      else { return nil }
      return FeedRecord(value: value, position: try position(of: sequence))
    }
  }

  package func recordTime(
    _ type: RecordType, key: [UInt8]
  ) throws(TidemarkError) -> Timestamp? {
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
    _ type: RecordType, key: [UInt8], value: [UInt8]
  ) throws(TidemarkError) -> Position {
    var batch = OperationBatch()
    try RecordTable.add(type, key: key, value: value, to: &batch)
    return end(of: try commit(batch))
  }

  package func append(
    _ type: RecordType, _ records: [(key: [UInt8], value: [UInt8])]
  ) throws(TidemarkError) {
    guard !records.isEmpty else { return }
    var batch = OperationBatch()
    for record in records {
      try RecordTable.add(type, key: record.key, value: record.value, to: &batch)
    }
    try commit(batch)
  }

  package func remove(_ type: RecordType, keys: [[UInt8]]) throws(TidemarkError) {
    try append(type, keys.map { (key: $0, value: []) })
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

  package func append(_ judged: JudgedBatch) throws(TidemarkError) -> Position {
    var batch = OperationBatch()
    // Before the entries, whose places are counted back from the mark.
    for name in judged.uploads {
      try RecordTable.add(.feedUpload, key: name, value: [], to: &batch)
    }
    for entry in judged.entries { try add(entry, of: judged.request, to: &batch) }
    #if TIDEMARK_PLANTED
      if PlantedSyncBug.isOn(.markApart) {
        try commit(batch)
        batch = OperationBatch()
      }
    #endif
    let mark = MarkRecord.encode(
      number: judged.request.number, batchID: judged.request.batchID, rulings: judged.rulings,
      entries: judged.entries.count)
    try RecordTable.add(
      .feedMark, key: judged.request.replica.bytes, value: mark, to: &batch)
    let result = try commit(batch)
    guard result.applied == batch.count else {
      throw TidemarkError(
        .unknownOutcome, "the log took another number of entries than the batch has")
    }
    return end(of: result)
  }

  /// The position of the last entry of a commit.
  private func end(of result: CommitResult) -> Position {
    Position(epoch: result.epoch, offset: result.sequences.upperBound - 1)
  }

  private func add(
    _ entry: JudgedBatch.Entry, of request: PushRequest, to batch: inout OperationBatch
  ) throws(TidemarkError) {
    let change = request.changes[entry.change]
    var attributes = EntryAttributes()
    attributes.origin = EntryAttributes.Origin(
      replica: request.replica.bytes, sequence: change.sequence)
    attributes.writerTime = change.commitTime
    attributes.time = change.time
    if change.kind == .put {
      attributes.hash = change.content.hash
      attributes.maxAge = change.content.maxAgeSeconds
    }
    let value = change.content.value.rawSpan
    guard case .applies(let revision) = entry.kind else {
      attributes.recordType = RecordType.loser.rawValue
      try batch.add(.record, key: change.key.rawSpan, value: value, attributes: attributes)
      return
    }
    var condition = -1
    switch revision {
    case .absent: condition = batch.addCondition(.absent)
    case .present(let sequence): condition = batch.addCondition(.sequence(sequence))
    case nil: break
    }
    if change.kind == .put {
      let labels = try batch.addLabelSet(change.content.labelSet)
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
