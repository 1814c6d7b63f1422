internal import TidemarkEngine

/// Puts and deletes of one key: those that say nothing besides go past the batch.
extension Store {
  /// Writes a value on the calling thread; not generic, so that the compiler makes one of it.
  @usableFromInline
  func putBlocking(
    _ key: RawSpan, _ value: RawSpan, _ labels: [EntryLabel], _ options: PutOptions,
    _ condition: WriteCondition?, _ durability: Durability?
  ) throws(TidemarkError) -> Receipt {
    try ReservedKeys.refuse(key)
    if labels.isEmpty, condition == nil, options.isEmpty, !caches.concerns(key),
      let result = try engine.stageSingle(.put, key: key, value: value, durability: durability)
    {
      return try receipt(of: result, durability)
    }
    var batch = WriteBatch()
    try batch.add(put: key, value, labels, options, condition)
    return try commitBlocking(batch, durability)
  }

  /// Deletes a key on the calling thread.
  /// - Returns: false when there was no such key.
  @usableFromInline
  func deleteBlocking(
    _ key: RawSpan, _ time: Timestamp?, _ condition: WriteCondition?, _ durability: Durability?
  ) throws(TidemarkError) -> Bool {
    try ReservedKeys.refuse(key)
    if time == nil, condition == nil, !caches.concerns(key),
      let result = try engine.stageSingle(.delete, key: key, durability: durability)
    {
      return try !receipt(of: result, durability).sequences.isEmpty
    }
    var batch = WriteBatch()
    try batch.add(delete: key, time: time, if: condition)
    return try !commitBlocking(batch, durability).sequences.isEmpty
  }

  /// Stages a put or delete of bytes alone where no task has to wait before it.
  /// - Returns: nil when a batch has to be made of it.
  func stageSingle(
    _ kind: EntryKind, _ key: some BytesConvertible, _ value: RawSpan?, _ durability: Durability?
  ) throws(TidemarkError) -> CommitResult? {
    try TidemarkError.checkCancellation()
    guard commits == nil || engine.writer.goalForRoom() == nil else { return nil }
    return try key.withBytes { (key) throws(TidemarkError) in
      try ReservedKeys.refuse(key)
      // A put of an absent key commits past the caches, so that an open question about the key
      // would not learn that its answer is out of date.
      guard !caches.concerns(key) else { return nil }
      return try engine.stageSingle(
        kind, key: key, value: value, durability: durability, waitsForRoom: commits == nil)
    }
  }
}
