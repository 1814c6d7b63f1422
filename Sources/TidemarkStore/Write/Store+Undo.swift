public import TidemarkEngine

extension Store {
  /// How often undo and clear are tried when somebody else writes their keys in between.
  fileprivate static let rewriteAttempts = 16

  /// Restores the state at a sequence, by new entries. Keys that came later are deleted. Keys that
  /// were changed or deleted get back their old value, labels and metadata. The history stays, so
  /// that an undo can be undone.
  ///
  /// It is one atomic batch. If somebody else writes one of the keys before it is committed, the
  /// undo begins anew from the state by then.
  /// - Parameters:
  ///   - sequence: the state to come back to: the last sequence of a commit, or 0.
  ///   - durability: when to return; nil for the store's.
  /// - Throws: `invalidArgument` when the sequence is not reached yet, or lies within a commit,
  ///   which can only be undone as a whole; `historyGone` when that state is no longer kept;
  ///   `limitExceeded` when there is more to undo than one batch can hold; `conflict` when others
  ///   write the keys in each of 16 attempts.
  @discardableResult
  public func undo(
    since sequence: UInt64, durability: Durability? = nil
  ) async throws(TidemarkError) -> WriteReceipt {
    try TidemarkError.checkCancellation()
    return try await retryingConflicts { () throws(TidemarkError) in
      let batch = try await offPool("tidemark-undo") { (blocking) throws(TidemarkError) in
        try blocking.store.undoBatch(since: sequence)
      }
      return try await commit(batch, durability)
    }
  }

  /// Undoes one commit, or consecutive ones, by new entries: their keys get the state from before
  /// them. Other keys stay as they are, whatever was written since.
  ///
  /// ```swift
  /// let receipt = try await store.write { batch in … }
  /// try await store.undo(receipt.sequences)
  /// ```
  /// ``StoreReader/commits(before:limit:)`` has the sequences of older commits.
  /// - Parameters:
  ///   - sequences: those of the commits; with an empty range nothing is undone.
  ///   - durability: when to return; nil for the store's.
  /// - Throws: `conflict` when one of the keys was written since; then nothing is undone.
  ///   `invalidArgument` when the sequences are not reached yet, and when they begin or end within
  ///   a commit: the error's sequences are those of the commit. `historyGone` and
  ///   `limitExceeded` as for ``undo(since:durability:)``.
  @discardableResult
  public func undo(
    _ sequences: Range<UInt64>, durability: Durability? = nil
  ) async throws(TidemarkError) -> WriteReceipt {
    try TidemarkError.checkCancellation()
    let batch = try await offPool("tidemark-undo") { (blocking) throws(TidemarkError) in
      try blocking.store.undoBatch(of: sequences)
    }
    return try await commit(batch, durability)
  }

  /// Deletes every key with a prefix and labels, as one atomic batch; cached values are evicted.
  /// - Parameters:
  ///   - prefix: only keys that begin with this.
  ///   - labels: only entries with these labels.
  ///   - durability: when to return; nil for the store's.
  /// - Returns: how many keys were deleted or evicted.
  /// - Throws: `limitExceeded` when there are more keys than one batch can hold; `conflict` when
  ///   others write them in each of 16 attempts.
  @discardableResult
  public func clear(
    prefix: some BytesConvertible = "", labels: LabelFilter = .everything,
    durability: Durability? = nil
  ) async throws(TidemarkError) -> Int {
    try TidemarkError.checkCancellation()
    let query = EntryQuery(prefix: prefix, labels: labels)
    return try await retryingConflicts { () throws(TidemarkError) in
      let batch = try await offPool("tidemark-clear") { (blocking) throws(TidemarkError) in
        try blocking.store.clearBatch(query)
      }
      return try await commit(batch, durability).sequences.count
    }
  }

  /// Calls `body`, which reads and then commits upon what it read, anew after each `conflict`; the
  /// last attempt's is thrown.
  package func retryingConflicts<R>(
    _ body: () async throws(TidemarkError) -> R
  ) async throws(TidemarkError) -> R {
    for _ in 1..<Self.rewriteAttempts {
      do { return try await body() } catch { guard error.code == .conflict else { throw error } }
    }
    return try await body()
  }
}

extension Store.Blocking {
  /// Brings the state at a sequence back; see ``Store/undo(since:durability:)``.
  @discardableResult
  public func undo(
    since sequence: UInt64, durability: Durability? = nil
  ) throws(TidemarkError) -> WriteReceipt {
    try retryingConflicts { () throws(TidemarkError) in
      try store.commitBlocking(try store.undoBatch(since: sequence), durability)
    }
  }

  /// Undoes one commit, or consecutive ones; see ``Store/undo(_:durability:)``.
  @discardableResult
  public func undo(
    _ sequences: Range<UInt64>, durability: Durability? = nil
  ) throws(TidemarkError) -> WriteReceipt {
    try store.commitBlocking(try store.undoBatch(of: sequences), durability)
  }

  /// Deletes every key with a prefix and labels; see ``Store/clear(prefix:labels:durability:)``.
  /// - Returns: how many keys were deleted.
  @discardableResult
  public func clear(
    prefix: some BytesConvertible = "", labels: LabelFilter = .everything,
    durability: Durability? = nil
  ) throws(TidemarkError) -> Int {
    let query = EntryQuery(prefix: prefix, labels: labels)
    return try retryingConflicts { () throws(TidemarkError) in
      try store.commitBlocking(try store.clearBatch(query), durability).sequences.count
    }
  }

  /// Calls `body` anew after each `conflict`; see ``Store/retryingConflicts(_:)``.
  package func retryingConflicts<R>(
    _ body: () throws(TidemarkError) -> R
  ) throws(TidemarkError) -> R {
    for _ in 1..<Store.rewriteAttempts {
      do { return try body() } catch { guard error.code == .conflict else { throw error } }
    }
    return try body()
  }
}
