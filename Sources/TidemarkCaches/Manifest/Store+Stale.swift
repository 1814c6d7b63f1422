public import TidemarkEngine

/// Something that a server says has changed.
public struct StaleHint: Sendable, Hashable {
  /// Keys of the store, with the prefixes of their caches.
  public var keys: [Key]
  /// The labels of entries; nil for none.
  public var labels: LabelFilter?

  /// A hint.
  /// - Parameters:
  ///   - keys: keys of the store, with the prefixes of their caches.
  ///   - labels: the labels of entries; nil for none.
  public init(keys: [Key] = [], labels: LabelFilter? = nil) {
    self.keys = keys
    self.labels = labels
  }
}

extension Store {
  /// Marks cached entries as valid no more, whichever cache they are in, until they are written or
  /// touched again. What the user owns stays as it is.
  /// - Parameters:
  ///   - keys: keys of the store, with the prefixes of their caches.
  ///   - labels: the labels of entries; nil for none.
  /// - Returns: how many entries were marked.
  @discardableResult
  public func markStale(
    keys: [Key] = [], labels: LabelFilter? = nil
  ) async throws(TidemarkError) -> Int {
    var marked = 0
    var batch = WriteBatch()
    registry.say(keys.map(\.bytes))
    for key in keys {
      try addStaleMark(key.bytes, to: &batch)
      marked += try await commitIfLarge(&batch)
    }
    if let labels {
      for key in try found(labels) {
        try addStaleMark(key, to: &batch)
        marked += try await commitIfLarge(&batch)
      }
    }
    return try await marked + commit(batch, nil).sequences.count
  }

  /// Marks cached entries as valid no more as a server says so, until its sequence ends.
  ///
  /// ```swift
  /// Task { try await store.markStale(on: events.map { StaleHint(keys: [Key($0.path)]) }) }
  /// ```
  /// - Parameter hints: events of a server; each is marked before the next is asked for.
  /// - Throws: what the sequence throws; what writing to the store throws.
  public func markStale<Hints: AsyncSequence>(
    on hints: Hints
  ) async throws where Hints.Element == StaleHint {
    for try await hint in hints { try await markStale(keys: hint.keys, labels: hint.labels) }
  }

  private static var marksPerCommit: Int { 4_096 }

  private func commitIfLarge(_ batch: inout WriteBatch) async throws(TidemarkError) -> Int {
    guard batch.count >= Self.marksPerCommit else { return 0 }
    let count = try await commit(batch, nil).sequences.count
    batch.removeAll()
    return count
  }

  private func addStaleMark(_ key: [UInt8], to batch: inout WriteBatch) throws(TidemarkError) {
    guard !ReservedKeys.contains(key.rawSpan),
      let slot = try engine.reader.slot(ofKey: key.rawSpan), slot.isLiveCached
    else { return }
    var attributes = EntryAttributes()
    attributes.entryClass = .cache
    attributes.time = Timestamp(milliseconds: engine.environment.clock.now().milliseconds)
    attributes.maxAge = Validity.staleMark
    try batch.operations.add(
      .touch, key: key.rawSpan, attributes: attributes,
      condition: batch.operations.addCondition(.isNewest(slot.sequence)))
  }

  /// The keys of entries with some labels, of which the caller is about to say something.
  private func found(_ labels: LabelFilter) throws(TidemarkError) -> [[UInt8]] {
    registry.say(prefix: [], labels)
    var rows = try keys(EntryQuery(labels: labels, values: false))
    var found: [[UInt8]] = []
    while let key = try rows.next() { found.append(key.bytes) }
    return found
  }
}
