public import TidemarkEngine

/// A message of a server that some cached data has changed: the keys or labels to mark stale.
public struct StaleHint: Sendable, Hashable {
  /// The keys of the store to mark stale, with the prefixes of their caches.
  public var keys: [Key]
  /// A filter for the labels of entries to mark stale; nil for none.
  public var labels: LabelFilter?

  /// Creates a message that marks keys, labelled entries, or both as stale.
  /// - Parameters:
  ///   - keys: keys of the store, with the prefixes of their caches.
  ///   - labels: the labels of entries; nil for none.
  public init(keys: [Key] = [], labels: LabelFilter? = nil) {
    self.keys = keys
    self.labels = labels
  }
}

extension Store {
  /// Marks cached entries of any cache as stale, until they are written or touched again. The
  /// user's own data stays as it is.
  /// - Parameters:
  ///   - keys: keys of the store, with the prefixes of their caches.
  ///   - labels: the labels of entries; nil for none.
  /// - Returns: how many entries were marked.
  @discardableResult
  public func markStale(
    keys: [Key] = [], labels: LabelFilter? = nil
  ) async throws(TidemarkError) -> Int {
    var found = keys.map(\.bytes)
    registry.willWrite(found)
    if let labels {
      registry.willWrite(prefix: [], labels)
      var rows = try self.keys(EntryQuery(labels: labels, values: false))
      while let key = try rows.next() { found.append(key.bytes) }
    }
    var marked = 0
    var batch = WriteBatch()
    for key in found where !ReservedKeys.contains(key.rawSpan) {
      _ = try batch.addTouch(of: key, maxAge: Validity.staleMark, engine)
      guard batch.count >= Self.marksPerCommit else { continue }
      marked += try await commit(batch, nil).sequences.count
      batch.removeAll()
    }
    return try await marked + commit(batch, nil).sequences.count
  }

  /// Marks cached entries as stale for each message of a server, until the sequence of messages
  /// ends.
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
}
