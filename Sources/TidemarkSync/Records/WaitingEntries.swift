internal import TidemarkEngine

/// Own entries that are not sent although they are not decided, with the reason: of each key one
/// at most, since the newest that waits speaks for the key.
///
/// The reasons are kept in the log, a record for each, of which those that changed are written with
/// the next commit. What the entries are is read from there when a session begins.
package struct WaitingEntries: Sendable, Hashable {
  package typealias Reason = PeerProgress.Waiting

  struct Entry: Sendable, Hashable {
    var sequence: UInt64
    var key: [UInt8]
    var reason: Reason
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
  package var values: some Collection<Reason> { entries.values.lazy.map(\.reason) }

  /// Why an entry waits; nil when it does not.
  package subscript(sequence: UInt64) -> Reason? { entries[sequence]?.reason }

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
  mutating func insert(_ change: LoggedChange, for wordyReason: Reason) -> Entry? {
    let reason = wordyReason.bounded
    let former = entry(ofKey: change.key)
    if let former {
      // An older one has nothing to say any more.
      guard former.sequence <= change.sequence else { return nil }
      if !PlantedSyncBug.isOn(.olderWaitsForEver) { remove(former.sequence) }
    }
    if self[change.sequence] != reason { changed.insert(change.sequence) }
    restore(change, reason)
    return former?.sequence == change.sequence ? nil : former
  }

  /// Takes what the log says.
  mutating func restore(_ change: LoggedChange, _ reason: Reason) {
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

  /// Takes note of an entry in the log's records that went with the history.
  mutating func noteMissing(_ sequence: UInt64) { changed.insert(sequence) }

  /// Takes note that the records are as this is.
  mutating func wereWritten() { changed = [] }
}

extension WaitingEntries: Sequence {
  package func makeIterator() -> some IteratorProtocol<(key: UInt64, value: Reason)> {
    entries.lazy.map { (key: $0.key, value: $0.value.reason) }.makeIterator()
  }
}

extension PeerProgress {
  /// An entry is not pending any more.
  mutating func decide(_ sequence: UInt64) {
    waiting.remove(sequence)
    again.remove(sequence)
    if sequence > frontier { ahead.insert(sequence) }
  }

  /// Lets an entry wait, which is not sent before it is decided.
  mutating func wait(_ change: LoggedChange, for reason: Waiting) {
    let former = waiting.insert(change, for: reason)
    again.remove(change.sequence)
    if change.sequence > frontier { ahead.insert(change.sequence) }
    if let former { passOn(former) }
  }

  /// A newer change of a key has taken the place of what waited.
  /// - Returns: what waited, if it is to be sent all the same.
  @discardableResult
  mutating func supersede(_ key: [UInt8], by sequence: UInt64) -> UInt64? {
    guard let former = waiting.entry(ofKey: key), former.sequence < sequence,
      !PlantedSyncBug.isOn(.olderWaitsForEver)
    else { return nil }
    waiting.remove(former.sequence)
    return passOn(former) ? former.sequence : nil
  }

  /// An entry that belongs to a write that applies as a whole goes with that, before what has taken
  /// its place, unless it was refused or given up.
  @discardableResult
  private mutating func passOn(_ former: WaitingEntries.Entry) -> Bool {
    guard former.isOfGroup else { return false }
    switch former.reason {
    case .conflict, .needsDecision:
      again.insert(former.sequence)
      return true
    case .lost, .parked: return false
    }
  }
}
