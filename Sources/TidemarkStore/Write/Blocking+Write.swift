public import TidemarkEngine

extension Store.Blocking {
  /// Writes a value; see `put` of ``Store``.
  @inlinable @discardableResult
  public func put(
    _ key: some BytesConvertible, _ value: some BytesConvertible, labels: [EntryLabel] = [],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) throws(TidemarkError) -> Receipt {
    try key.withBytes { (key) throws(TidemarkError) in
      try value.withBytes { (value) throws(TidemarkError) in
        try store.putBlocking(key, value, labels, options, condition, durability)
      }
    }
  }

  /// Writes a value with labels of text that is no literal; see `put` of ``Store``.
  @discardableResult @_disfavoredOverload
  public func put(
    _ key: some BytesConvertible, _ value: some BytesConvertible, labels: [some StringProtocol],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) throws(TidemarkError) -> Receipt {
    try put(
      key, value, labels: labels.map { EntryLabel($0) }, options: options, if: condition,
      durability: durability)
  }

  /// Writes a value whose bytes the caller lends for the call; see `put` of ``Store``.
  @inlinable @discardableResult
  public func put(
    _ key: some BytesConvertible, _ value: RawSpan, labels: [EntryLabel] = [],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) throws(TidemarkError) -> Receipt {
    try key.withBytes { (key) throws(TidemarkError) in
      try store.putBlocking(key, value, labels, options, condition, durability)
    }
  }

  /// Deletes a key; see ``Store/delete(_:time:if:durability:)``.
  /// - Returns: false when there was no such key; then nothing is written.
  @inlinable @discardableResult
  public func delete(
    _ key: some BytesConvertible, time: Timestamp? = nil, if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) throws(TidemarkError) -> Bool {
    try key.withBytes { (key) throws(TidemarkError) in
      try store.deleteBlocking(key, time, condition, durability)
    }
  }

  /// Renews a value's validity; see ``Store/touch(_:maxAge:hash:if:durability:)``.
  /// - Returns: false when there is no such key; then nothing is written.
  @discardableResult
  public func touch(
    _ key: some BytesConvertible, maxAge: Duration? = nil, hash: [UInt8]? = nil,
    if condition: WriteCondition? = nil, durability: Durability? = nil
  ) throws(TidemarkError) -> Bool {
    var batch = WriteBatch()
    try batch.touch(key, maxAge: maxAge, hash: hash, if: condition)
    return try !store.commitBlocking(batch, durability).sequences.isEmpty
  }

  /// Commits what the closure puts into the batch, all or nothing.
  /// - Throws: what `body` throws; else `TidemarkError`.
  @discardableResult
  public func write(
    atomicAtPeer: Bool = false, durability: Durability? = nil,
    _ body: (inout WriteBatch) throws -> Void
  ) throws -> Receipt {
    var batch = WriteBatch(atomicAtPeer: atomicAtPeer)
    try body(&batch)
    return try store.commitBlocking(batch, durability)
  }

  /// Commits a batch, all or nothing.
  @discardableResult
  public func write(
    _ batch: WriteBatch, durability: Durability? = nil
  ) throws(TidemarkError) -> Receipt { try store.commitBlocking(batch, durability) }
}
