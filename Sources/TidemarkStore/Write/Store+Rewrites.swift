internal import TidemarkEngine

extension Store {
  /// A batch that leads back from the newest state to an older one, on condition that the keys stay
  /// as they are until it is committed.
  package func undoBatch(since sequence: UInt64) throws(TidemarkError) -> WriteBatch {
    let (before, now) = (try engine.reader.view(at: sequence), try engine.reader.view())
    try checkNoCommitCrosses(sequence)
    return try undoBatch(from: before, through: now, now)
  }

  /// A batch that takes the commits of some sequences back, on condition that nobody has written
  /// their keys since.
  package func undoBatch(of sequences: Range<UInt64>) throws(TidemarkError) -> WriteBatch {
    guard let first = sequences.first, let last = sequences.last else { return WriteBatch() }
    guard first > 0 else {
      throw TidemarkError(.invalidArgument, "sequences begin with 1")
    }
    // The last one first: of a range that is not reached yet it is the one to name.
    let after = try engine.reader.view(at: last)
    let before = try engine.reader.view(at: first - 1)
    try checkNoCommitCrosses(before.sequence)
    try checkNoCommitCrosses(after.sequence)
    return try undoBatch(from: before, through: after, try engine.reader.view())
  }

  private func undoBatch(
    from before: EngineView, through after: EngineView, _ now: EngineView
  ) throws(TidemarkError) -> WriteBatch {
    var batch = WriteBatch()
    for key in try keysChanged(after: before.sequence, through: after.sequence) {
      let old = try before.entry(forKey: key.rawSpan)
      let new = try now.entry(forKey: key.rawSpan)
      if after.sequence < now.sequence,
        try after.entry(forKey: key.rawSpan)?.sequence != new?.sequence
      {
        throw TidemarkError(
          .conflict, "a key was written again since; undo that first, or write what you want",
          sequences: new.map { $0.sequence...$0.sequence })
      }
      guard old != nil || new != nil else { continue }
      // The entries of a cache come and go as the server says: the user's doing is taken back.
      let isCached = try engine.reader.slot(ofKey: key.rawSpan)?.size.isCached ?? true
      if isCached, caches.contains(key.rawSpan) { continue }
      let condition = new.map { WriteCondition.sequence($0.sequence) } ?? .absent
      do {
        if let old {
          try putBack(old, key: key, mayBeCached: isCached, if: condition, into: &batch)
        } else {
          try batch.delete(key, if: condition)
        }
      } catch  where error.code == .limitExceeded {
        throw TidemarkError(
          .limitExceeded,
          "more was written since sequence \(before.sequence) than one batch can undo; "
            + "take a later sequence, or write the older state back in parts",
          cause: error)
      }
    }
    return batch
  }

  private func putBack(
    _ old: LogEntry, key: [UInt8], mayBeCached: Bool, if condition: WriteCondition,
    into batch: inout WriteBatch
  ) throws(TidemarkError) {
    var info = try engine.reader.info(old)
    // A cached value must not hide a delete that peers may not have heard of.
    if !mayBeCached { info.attributes.entryClass = .owned }
    try engine.reader.withValue(of: info.valueSequence) { (value, _) throws(TidemarkError) in
      try batch.putBack(key: key, value, info: info, if: condition)
    }
  }

  /// Deletes of all keys that a query finds. With labels they demand that the keys stay as they
  /// are, since a newer entry may carry others.
  package func clearBatch(_ query: EntryQuery) throws(TidemarkError) -> WriteBatch {
    caches.willWrite(prefix: query.prefix.bytes, query.labels)
    var batch = WriteBatch()
    var rows = try keys(query)
    while let key = try rows.next()?.bytes {
      do {
        if try engine.reader.slot(ofKey: key.rawSpan)?.isLiveCached == true {
          try batch.operations.addEviction(of: key.rawSpan, at: 0)
          continue
        }
        try batch.delete(key, if: query.labels.isEmpty ? nil : .sequence(rows.sequence))
      } catch  where error.code == .limitExceeded {
        throw TidemarkError(
          .limitExceeded, "more keys than one batch can delete; clear by longer prefixes",
          cause: error)
      }
    }
    return batch
  }
}
