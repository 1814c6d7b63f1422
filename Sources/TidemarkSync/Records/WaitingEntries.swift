internal import TidemarkEngine
package import TidemarkSyncProtocol

/// Why an undecided entry is not sent.
package enum WaitReason: Sendable, Hashable {
  /// A conflict: the feed has another version, at this position or later, which the resolver needs.
  case conflict(FeedPosition)
  /// The same, but the feed's policy has decided: the feed's version replaces the local one.
  case lost(FeedPosition)
  /// The peer has refused it.
  case parked(SyncRejection)
  /// The resolver left the decision to the user.
  case needsDecision
}

/// Own entries that are neither sent nor decided, with the reason: conflicts and parked entries.
/// Each key has one at most, the newest, which stands for the key.
///
/// Each reason is a record in the log; the next commit writes those that changed. A session reads
/// the entries themselves from the log when it begins.
package struct WaitingEntries: Sendable, Hashable {
  struct Entry: Sendable, Hashable {
    var sequence: UInt64
    var key: [UInt8]
    var reason: WaitReason
    /// Whether it belongs to an atomic group.
    var isOfGroup: Bool
    var isDelete: Bool
  }

  private(set) var entries: [UInt64: Entry] = [:]
  private var sequences: [[UInt8]: UInt64] = [:]
  /// Entries whose records have to be written or removed.
  private(set) var changed: Set<UInt64> = []

  package var isEmpty: Bool { entries.isEmpty }
  package var count: Int { entries.count }
  package var keys: some Collection<UInt64> { entries.keys }
  package var values: some Collection<WaitReason> { entries.values.lazy.map(\.reason) }

  /// Why an entry waits; nil when it does not.
  package subscript(sequence: UInt64) -> WaitReason? { entries[sequence]?.reason }

  /// The key's waiting entry; nil if none waits.
  func entry(ofKey key: [UInt8]) -> Entry? { sequences[key].flatMap { entries[$0] } }

  /// The entries that wait for the remote states of their keys and the resolver, sorted by key, so
  /// that simulations are reproducible.
  var conflicts: [Entry] {
    entries.values.filter { $0.reason.position != nil && sequences[$0.key] == $0.sequence }
      .sorted { $0.key.lexicographicallyPrecedes($1.key) }
  }

  /// Adds an entry, or changes its reason.
  /// - Returns: the key's older entry that this one has replaced.
  mutating func insert(_ change: LoggedChange, for fullReason: WaitReason) -> Entry? {
    let reason = fullReason.bounded
    let waiting = entry(ofKey: change.key)
    if let waiting {
      // An older entry does not replace a newer one.
      guard waiting.sequence <= change.sequence else { return nil }
      if !PlantedSyncBug.isOn(.olderWaitsForEver) { remove(waiting.sequence) }
    }
    if self[change.sequence] != reason { changed.insert(change.sequence) }
    restore(change, change.sequence, reason)
    return waiting?.sequence == change.sequence ? nil : waiting
  }

  /// Restores an entry from its record.
  /// - Parameter change: nil if compaction has dropped it; then its record is removed as well.
  mutating func restore(_ change: LoggedChange?, _ sequence: UInt64, _ reason: WaitReason) {
    guard let change else {
      changed.insert(sequence)
      return
    }
    entries[change.sequence] = Entry(
      sequence: change.sequence, key: change.key, reason: reason,
      isOfGroup: change.attributes.atomicGroup != 0, isDelete: change.kind == .delete)
    sequences[change.key] = change.sequence
  }

  mutating func remove(_ sequence: UInt64) {
    guard let entry = entries.removeValue(forKey: sequence) else { return }
    changed.insert(sequence)
    if sequences[entry.key] == sequence { sequences[entry.key] = nil }
  }

  mutating func removeAll() {
    changed.formUnion(entries.keys)
    (entries, sequences) = ([:], [:])
  }

  /// Marks all records as written.
  mutating func wereWritten() { changed = [] }
}

extension WaitingEntries: Sequence {
  package func makeIterator() -> some IteratorProtocol<(key: UInt64, value: WaitReason)> {
    entries.lazy.map { (key: $0.key, value: $0.value.reason) }.makeIterator()
  }
}
