internal import TidemarkEngine

// Batches that undo or clear. They are made without a lock: changes of an undo are conditional on
// the newest entries of their keys, so that a write in between makes the commit throw `conflict`.
extension Store {
  /// A batch that leads back from the newest state to the one at a sequence.
  package func undoBatch(since sequence: UInt64) throws(TidemarkError) -> WriteBatch {
    let (before, now) = (try engine.reader.view(at: sequence), try engine.reader.view())
    try checkNoCommitCrosses(sequence)
    return try undoBatch(from: before, through: now, now: now)
  }

  /// A batch that undoes the commits of some sequences; see ``undo(_:durability:)`` for the errors.
  package func undoBatch(of sequences: Range<UInt64>) throws(TidemarkError) -> WriteBatch {
    guard let first = sequences.first, let last = sequences.last else { return WriteBatch() }
    guard first > 0 else { throw TidemarkError(.invalidArgument, "sequences begin with 1") }
    // `last` first: where the range is not reached yet, the error is to name its end.
    let after = try engine.reader.view(at: last)
    let before = try engine.reader.view(at: first - 1)
    try checkNoCommitCrosses(before.sequence)
    try checkNoCommitCrosses(after.sequence)
    return try undoBatch(from: before, through: after, now: try engine.reader.view())
  }

  /// A batch that brings each key with an entry behind `before`, up to `after`, back to `before`.
  private func undoBatch(
    from before: EngineView, through after: EngineView, now: EngineView
  ) throws(TidemarkError) -> WriteBatch {
    var batch = WriteBatch()
    for key in try keysChanged(after: before.sequence, through: after.sequence) {
      let old = try before.entry(forKey: key.rawSpan)
      let new = try now.entry(forKey: key.rawSpan)
      // A write behind `after` stands upon what is to be undone, and must not be lost with it.
      if after.sequence < now.sequence,
        try after.entry(forKey: key.rawSpan)?.sequence != new?.sequence
      {
        throw TidemarkError(
          .conflict, "a key was written again since; undo that first, or write what you want",
          sequences: new.map { $0.sequence...$0.sequence })
      }
      // The key came and went: nothing to undo.
      guard old != nil || new != nil else { continue }
      // An undo takes back what the user did; what a cache holds follows its server.
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

  /// Adds a put that repeats an older version.
  /// - Parameter mayBeCached: whether the key's newest entry is cached data, and not the user's.
  private func putBack(
    _ old: LogEntry, key: [UInt8], mayBeCached: Bool, if condition: WriteCondition,
    into batch: inout WriteBatch
  ) throws(TidemarkError) {
    var info = try engine.reader.info(old)
    // Cached entries are not sent to peers: one would hide the user's value or delete from them.
    if !mayBeCached { info.attributes.entryClass = .owned }
    try engine.reader.withValue(of: info.valueSequence) { (value, _) throws(TidemarkError) in
      try batch.putBack(key: key, value, info: info, if: condition)
    }
  }

  /// A batch that deletes all keys that a query finds, and evicts those with cached values. With
  /// labels each delete is conditional on the entry that was found: a newer one may have others.
  package func clearBatch(_ query: EntryQuery) throws(TidemarkError) -> WriteBatch {
    // First, so that no source's answer adds a key that was absent when the keys were read.
    caches.willWrite(prefix: query.prefix.bytes, query.labels)
    var batch = WriteBatch()
    var rows = try keys(query)
    while let key = try rows.next()?.bytes {
      do {
        if try engine.reader.slot(ofKey: key.rawSpan)?.isLiveCached == true {
          // 0: whichever entry is the newest. A delete would be replicated.
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
