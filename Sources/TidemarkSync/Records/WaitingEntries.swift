internal import TidemarkEngine

/// Own entries that are not sent although they are not decided, with the reason: of each key one
/// at most, since the newest that waits speaks for the key.
///
/// The reasons are kept in the log, a record for each, of which those that changed are written with
/// the next commit. The keys are read from there when a session begins.
package struct WaitingEntries: Sendable, Hashable {
  package typealias Reason = PeerProgress.Waiting

  /// An entry that waits.
  struct Entry: Sendable, Hashable {
    var sequence: UInt64
    var reason: Reason
    /// Whether it belongs to a write that applies at the peer as a whole.
    var isOfGroup = false
  }

  /// The facts known of an entry besides its reason.
  private struct Place: Sendable, Hashable {
    var key: [UInt8]
    var isOfGroup: Bool
    var isDelete: Bool
  }

  package private(set) var reasons: [UInt64: Reason] = [:]
  private var places: [UInt64: Place] = [:]
  private var sequences: [[UInt8]: UInt64] = [:]
  /// Entries whose records are not as they are here.
  private(set) var changed: Set<UInt64> = []

  package var isEmpty: Bool { reasons.isEmpty }
  package var count: Int { reasons.count }
  package var keys: some Collection<UInt64> { reasons.keys }
  package var values: some Collection<Reason> { reasons.values }

  /// Why an entry waits; nil when it does not.
  package subscript(sequence: UInt64) -> Reason? { reasons[sequence] }

  /// Whether an entry that waits deletes its key, or what it does was not looked up yet.
  func isDelete(_ sequence: UInt64) -> Bool { places[sequence]?.isDelete ?? true }

  /// The entry of a key that waits.
  func entry(ofKey key: [UInt8]) -> Entry? {
    guard let sequence = sequences[key], let reason = reasons[sequence] else { return nil }
    return Entry(
      sequence: sequence, reason: reason, isOfGroup: places[sequence]?.isOfGroup ?? false)
  }

  /// The keys whose remote state the resolver needs, with the entries that wait for it: in the
  /// order of the keys, so that the same happens in every run.
  var conflicts: [(key: [UInt8], entry: Entry)] {
    guard reasons.values.contains(where: { $0.position != nil }) else { return [] }
    var found: [(key: [UInt8], entry: Entry)] = []
    for key in sequences.keys {
      if let entry = entry(ofKey: key), entry.reason.position != nil { found.append((key, entry)) }
    }
    return found.sorted { $0.key.lexicographicallyPrecedes($1.key) }
  }

  /// Lets an entry wait.
  /// - Returns: the entry of the key that has waited so far and does not any more.
  mutating func insert(_ change: LoggedChange, for wordyReason: Reason) -> Entry? {
    let reason = wordyReason.bounded
    let former = entry(ofKey: change.key)
    if let former {
      // An older one has nothing to say any more.
      guard former.sequence <= change.sequence else { return nil }
      if !Self.isOlderKept { remove(former.sequence) }
    }
    if reasons[change.sequence] != reason { changed.insert(change.sequence) }
    reasons[change.sequence] = reason
    learn(change)
    return former?.sequence == change.sequence ? nil : former
  }

  /// Takes note of what an entry that waits is, now that it was looked up.
  mutating func learn(_ change: LoggedChange) {
    places[change.sequence] = Place(
      key: change.key, isOfGroup: change.attributes.atomicGroup != 0,
      isDelete: change.kind == .delete)
    sequences[change.key] = change.sequence
  }

  mutating func remove(_ sequence: UInt64) {
    guard reasons.removeValue(forKey: sequence) != nil else { return }
    changed.insert(sequence)
    guard let place = places.removeValue(forKey: sequence) else { return }
    if sequences[place.key] == sequence { sequences[place.key] = nil }
  }

  /// Nothing waits any more.
  mutating func removeAll() {
    changed.formUnion(reasons.keys)
    (reasons, places, sequences) = ([:], [:], [:])
  }

  /// Takes note that the records are as this is.
  mutating func wereWritten() { changed = [] }

  static var isOlderKept: Bool {
    #if TIDEMARK_PLANTED
      PlantedSyncBug.isOn(.olderWaitsForEver)
    #else
      false
    #endif
  }

  // MARK: Read from the log

  /// Takes what the log says; the key is learnt later.
  mutating func restore(_ sequence: UInt64, _ reason: Reason) {
    reasons[sequence] = reason
  }

  /// Entries whose keys are not known yet, in the order of the log.
  var withoutKey: [UInt64] {
    reasons.keys.filter { places[$0] == nil }.sorted()
  }
}

extension PeerProgress.Waiting {
  /// The same with the peer's words cut to what is kept of them.
  var bounded: Self {
    if case .parked(let rejection) = self { .parked(rejection.bounded) } else { self }
  }
}

extension WaitingEntries: Sequence {
  package func makeIterator() -> Dictionary<UInt64, Reason>.Iterator { reasons.makeIterator() }
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
      !WaitingEntries.isOlderKept
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
