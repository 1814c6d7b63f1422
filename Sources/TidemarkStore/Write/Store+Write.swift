public import TidemarkEngine

extension Store {
  /// Writes a value for a key. It replaces the key's value, labels and all other properties with
  /// those given now.
  ///
  /// ```swift
  /// try await store.put("note/1", "Buy milk", labels: ["inbox"])
  /// try await store.put("counter", bytes, if: .sequence(entry.sequence))
  /// ```
  /// - Parameters:
  ///   - key: 1 to 65,535 bytes.
  ///   - value: up to 64 MiB.
  ///   - labels: up to 64; a set, so that order and repetition do not count.
  ///   - options: the caller's time, validator hash, validity and class.
  ///   - condition: the state in which the key must be.
  ///   - durability: when to return; nil for the store's.
  /// - Throws: `conflict` when the condition does not hold, `invalidArgument`, `noSpace` and
  ///   `cancelled` with nothing written; `unknownOutcome` when the disk failed midway.
  @discardableResult
  public func put(
    _ key: some BytesConvertible, _ value: some BytesConvertible, labels: [EntryLabel] = [],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) async throws(TidemarkError) -> WriteReceipt {
    if condition == nil, options.isEmpty {
      // The fast path: key, value and labels are staged without a batch, unless they need one.
      let result = try value.withBytes { (value) throws(TidemarkError) in
        try stageSingle(.put, key, value, labels: labels, durability)
      }
      if let result { return try await receipt(of: result, durability) }
    }
    var batch = WriteBatch()
    try batch.put(key, value, labels: labels, options: options, if: condition)
    return try await commit(batch, durability)
  }

  /// Writes a value with labels that are `String` or `Substring` values; see
  /// ``put(_:_:labels:options:if:durability:)``.
  @discardableResult @_disfavoredOverload
  public func put(
    _ key: some BytesConvertible, _ value: some BytesConvertible, labels: [some StringProtocol],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) async throws(TidemarkError) -> WriteReceipt {
    try await put(
      key, value, labels: labels.map { EntryLabel($0) }, options: options, if: condition,
      durability: durability)
  }

  /// Writes a value from a span of bytes, which must stay valid during the call; see
  /// ``put(_:_:labels:options:if:durability:)``.
  @discardableResult
  public func put(
    _ key: some BytesConvertible, _ value: RawSpan, labels: [EntryLabel] = [],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) async throws(TidemarkError) -> WriteReceipt {
    // The fast path, as above.
    if condition == nil, options.isEmpty,
      let result = try stageSingle(.put, key, value, labels: labels, durability)
    {
      return try await receipt(of: result, durability)
    }
    var batch = WriteBatch()
    try batch.put(key, value, labels: labels, options: options, if: condition)
    return try await commit(batch, durability)
  }

  /// Deletes a key. Later reads find no value, and older versions stay as long as the retention
  /// keeps them.
  /// - Parameters:
  ///   - key: the key.
  ///   - time: the delete's own time; views by own time show or leave out the delete by it.
  ///   - condition: the state in which the key must be.
  ///   - durability: when to return; nil for the store's.
  /// - Returns: false when there was no such key; then nothing is written.
  @discardableResult
  public func delete(
    _ key: some BytesConvertible, time: Timestamp? = nil, if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) async throws(TidemarkError) -> Bool {
    // The fast path, as for puts.
    if time == nil, condition == nil, let result = try stageSingle(.delete, key, nil, durability) {
      return try await !receipt(of: result, durability).sequences.isEmpty
    }
    var batch = WriteBatch()
    try batch.delete(key, time: time, if: condition)
    return try await !commit(batch, durability).sequences.isEmpty
  }

  /// Renews a value's validity from now on, by an entry that does not repeat the value.
  /// - Parameters:
  ///   - key: the key.
  ///   - maxAge: for how long the value is valid; nil leaves that as it is.
  ///   - hash: a new validator hash; nil leaves the old one.
  ///   - condition: the state in which the key must be.
  ///   - durability: when to return; nil for the store's.
  /// - Returns: false when there is no such key; then nothing is written.
  @discardableResult
  public func touch(
    _ key: some BytesConvertible, maxAge: Duration? = nil, hash: [UInt8]? = nil,
    if condition: WriteCondition? = nil, durability: Durability? = nil
  ) async throws(TidemarkError) -> Bool {
    var batch = WriteBatch()
    try batch.touch(key, maxAge: maxAge, hash: hash, if: condition)
    return try await !commit(batch, durability).sequences.isEmpty
  }

  /// Commits the changes that a closure adds to a batch: all of them or none.
  ///
  /// ```swift
  /// try await store.write { batch in
  ///   try batch.put("account/1", "90", if: .sequence(12))
  ///   try batch.put("account/2", "110", if: .sequence(13))
  /// }
  /// ```
  /// All conditions are compared with the state before the batch; the `operation` of the error is
  /// the index of the change whose condition does not hold.
  /// - Parameters:
  ///   - atomicAtPeer: whether a peer, too, applies all changes or none; see
  ///     ``WriteBatch/init(atomicAtPeer:)``.
  ///   - durability: when to return; nil for the store's.
  ///   - body: fills the batch, isolated to the caller's actor; if it throws, nothing is written.
  /// - Throws: what `body` throws; else `TidemarkError`, as ``write(_:durability:)`` with a batch.
  @discardableResult
  nonisolated(nonsending) public func write(
    atomicAtPeer: Bool = false, durability: Durability? = nil,
    _ body: (inout WriteBatch) throws -> Void
  ) async throws -> WriteReceipt {
    var batch = WriteBatch(atomicAtPeer: atomicAtPeer)
    try body(&batch)
    return try await commit(batch, durability)
  }

  /// Commits a batch: all of its changes or none.
  /// - Parameters:
  ///   - batch: the changes to commit.
  ///   - durability: when to return; nil for the store's.
  /// - Returns: the sequences and the time of the commit.
  /// - Throws: `conflict` when a condition of the batch does not hold; then nothing is written.
  @discardableResult
  public func write(
    _ batch: WriteBatch, durability: Durability? = nil
  ) async throws(TidemarkError) -> WriteReceipt { try await commit(batch, durability) }
}
