public import TidemarkEngine

/// A key that differs between two states of a store, as ``Store/diff(from:to:)`` reports it.
public struct EntryDifference: Sendable, Hashable {
  /// Whether the key was added, changed or removed between the first state and the second.
  @nonexhaustive
  public enum Kind: Sendable, Hashable { case added, changed, removed }

  /// The key that differs between the two states.
  public var key: Key
  /// The sequence of the key's newest entry in the first state; nil when the key was absent there.
  public var before: UInt64?
  /// The sequence of the key's newest entry in the second state; nil when the key is absent there.
  public var after: UInt64?

  /// Whether the key was added, changed or removed between the first state and the second.
  public var kind: Kind {
    if before == nil { return .added }
    return after == nil ? .removed : .changed
  }
}

extension Store {
  /// The differences between two states, in the order of keys.
  ///
  /// A key that was written or touched in between counts as changed, also when its value is the
  /// same; one that came and went does not count. The cost grows with what was written between
  /// the two, not with the size of the store.
  /// - Parameters:
  ///   - first: the sequence of one state.
  ///   - second: the sequence of the other; when it is the earlier one, the answer tells how to
  ///     come back to it.
  /// - Throws: `historyGone` when a state is no longer kept, `invalidArgument` when it was not
  ///   reached yet.
  public func diff(from first: UInt64, to second: UInt64) throws(TidemarkError) -> [EntryDifference]
  {
    let (before, after) = (try engine.reader.view(at: first), try engine.reader.view(at: second))
    var differences: [EntryDifference] = []
    for key in try keysChanged(after: min(first, second), through: max(first, second)) {
      // Nil in both: the key came and went. No two entries share a sequence.
      let old = try before.entry(forKey: key.rawSpan)?.sequence
      let new = try after.entry(forKey: key.rawSpan)?.sequence
      if old != new { differences.append(EntryDifference(key: Key(key), before: old, after: new)) }
    }
    return differences.sorted { $0.key < $1.key }
  }

  /// The keys of the entries after `sequence` through `last`, each once, in the order of the first
  /// entry. The caller holds a view at `sequence`, so that compaction drops none of the entries.
  func keysChanged(
    after sequence: UInt64, through last: UInt64
  ) throws(TidemarkError) -> [[UInt8]] {
    var cursor = LogCursor(engine.reader, from: sequence + 1, through: last)
    var seen: Set<[UInt8]> = []
    var keys: [[UInt8]] = []
    while let entry = try cursor.next() {
      let key = entry.key
      if seen.insert(key).inserted { keys.append(key) }
    }
    return keys
  }
}
