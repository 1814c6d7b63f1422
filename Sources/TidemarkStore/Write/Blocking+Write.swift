public import TidemarkEngine

extension Store.Blocking {
  /// Writes a value and blocks until the durability is reached; see `put` of ``Store`` for the
  /// parameters.
  @inlinable @discardableResult
  public func put(
    _ key: some BytesConvertible, _ value: some BytesConvertible, labels: [EntryLabel] = [],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) throws(TidemarkError) -> WriteReceipt {
    try key.withBytes { (key) throws(TidemarkError) in
      try value.withBytes { (value) throws(TidemarkError) in
        try store.putBlocking(key, value, labels, options, condition, durability)
      }
    }
  }

  /// Writes a value with labels that are `String` or `Substring` values; see `put` of ``Store``.
  @discardableResult @_disfavoredOverload
  public func put(
    _ key: some BytesConvertible, _ value: some BytesConvertible, labels: [some StringProtocol],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) throws(TidemarkError) -> WriteReceipt {
    try put(
      key, value, labels: labels.map { EntryLabel($0) }, options: options, if: condition,
      durability: durability)
  }

  /// Writes a value from a span of bytes, which must stay valid during the call; see `put` of
  /// ``Store``.
  @inlinable @discardableResult
  public func put(
    _ key: some BytesConvertible, _ value: RawSpan, labels: [EntryLabel] = [],
    options: PutOptions = PutOptions(), if condition: WriteCondition? = nil,
    durability: Durability? = nil
  ) throws(TidemarkError) -> WriteReceipt {
    try key.withBytes { (key) throws(TidemarkError) in
      try store.putBlocking(key, value, labels, options, condition, durability)
    }
  }

  /// Deletes a key and blocks until the durability is reached; see
  /// ``Store/delete(_:time:if:durability:)``.
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

  /// Commits the changes that a closure adds to a batch, all or none, and blocks until the
  /// durability is reached.
  /// - Throws: what `body` throws; else `TidemarkError`.
  @discardableResult
  public func write(
    atomicAtPeer: Bool = false, durability: Durability? = nil,
    _ body: (inout WriteBatch) throws -> Void
  ) throws -> WriteReceipt {
    var batch = WriteBatch(atomicAtPeer: atomicAtPeer)
    try body(&batch)
    return try store.commitBlocking(batch, durability)
  }

  /// Commits a batch, all of its changes or none, and blocks until the durability is reached.
  @discardableResult
  public func write(
    _ batch: WriteBatch, durability: Durability? = nil
  ) throws(TidemarkError) -> WriteReceipt { try store.commitBlocking(batch, durability) }
}
