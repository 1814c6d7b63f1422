internal import TidemarkEngine
package import TidemarkSyncProtocol

/// Why an entry is not sent although it is not decided.
package enum WaitReason: Sendable, Hashable {
  /// Something else stands in the feed, at this position or behind it; the resolver needs it.
  case conflict(Position)
  /// The same, and the feed's policy has decided for it.
  case lost(Position)
  /// The peer will not have it.
  case parked(Rejection)
  /// The user must decide.
  case needsDecision
}

/// Own entries that are not sent although they are not decided, with the reason: of each key one
/// at most, since the newest that waits speaks for the key.
///
/// The reasons are kept in the log, a record for each, of which those that changed are written with
/// the next commit. What the entries are is read from there when a session begins.
package struct WaitingEntries: Sendable, Hashable {
  struct Entry: Sendable, Hashable {
    var sequence: UInt64
    var key: [UInt8]
    var reason: WaitReason
    /// Whether it belongs to a write that applies at the peer as a whole.
    var isOfGroup: Bool
    var isDelete: Bool
  }

  private(set) var entries: [UInt64: Entry] = [:]
  private var sequences: [[UInt8]: UInt64] = [:]
  /// Entries whose records are not as they are here.
  private(set) var changed: Set<UInt64> = []

  package var isEmpty: Bool { entries.isEmpty }
  package var count: Int { entries.count }
  package var keys: some Collection<UInt64> { entries.keys }
  package var values: some Collection<WaitReason> { entries.values.lazy.map(\.reason) }

  /// Why an entry waits; nil when it does not.
  package subscript(sequence: UInt64) -> WaitReason? { entries[sequence]?.reason }

  /// The entry of a key that waits.
  func entry(ofKey key: [UInt8]) -> Entry? { sequences[key].flatMap { entries[$0] } }

  /// The entries that wait for the remote states of their keys, which the resolver needs: in the
  /// order of the keys, so that the same happens in every run.
  var conflicts: [Entry] {
    entries.values.filter { $0.reason.position != nil && sequences[$0.key] == $0.sequence }
      .sorted { $0.key.lexicographicallyPrecedes($1.key) }
  }

  /// Lets an entry wait.
  /// - Returns: the entry of the key that has waited so far and does not any more.
  mutating func insert(_ change: LoggedChange, for wordyReason: WaitReason) -> Entry? {
    let reason = wordyReason.bounded
    let former = entry(ofKey: change.key)
    if let former {
      // An older one has nothing to say any more.
      guard former.sequence <= change.sequence else { return nil }
      if !PlantedSyncBug.isOn(.olderWaitsForEver) { remove(former.sequence) }
    }
    if self[change.sequence] != reason { changed.insert(change.sequence) }
    restore(change, change.sequence, reason)
    return former?.sequence == change.sequence ? nil : former
  }

  /// Takes what the log says.
  /// - Parameter change: nil for one that went with the history; its record goes, too.
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

  /// Takes note that the records are as this is.
  mutating func wereWritten() { changed = [] }
}

extension WaitingEntries: Sequence {
  package func makeIterator() -> some IteratorProtocol<(key: UInt64, value: WaitReason)> {
    entries.lazy.map { (key: $0.key, value: $0.value.reason) }.makeIterator()
  }
}
