internal import TidemarkEngine

/// Room in a cache: the entries that make it, chosen before a batch is committed and settled after.
extension CacheRegion {
  /// The effect of a batch on the cache, worked out before it is committed.
  struct Change {
    /// The keys that it writes or gives up, once each.
    var keys: [[UInt8]] = []
    /// The entries that these have now.
    var former: [[UInt8]: UInt64] = [:]
    /// Bytes of what it puts, by key.
    var puts: [[UInt8]: Int] = [:]
    /// The entries that make room, and their keys.
    var victims: [(sequence: UInt64, key: [UInt8])] = []
    /// Whether it gives entries up itself.
    var givesUp = false
    /// How many of these go since they have been stale for long.
    var expired = 0
  }

  /// Chooses what makes room for the puts of a batch: those that were used least recently.
  func makeRoom(for change: inout Change) throws(TidemarkError) {
    let policy = policy
    // A value that is too large by itself must not make all others go.
    for key in change.keys {
      guard let length = change.puts[key], length > policy.bytes ?? .max || policy.capacity ?? 1 < 1
      else { continue }
      change.puts[key] = nil
      change.victims.append((0, key))
    }
    var gone = Set(change.former.values).union(change.victims.map(\.sequence))
    while true {
      var (candidates, room) = candidates(for: change, without: gone, policy)
      for use in candidates {
        gone.insert(use.sequence)
        try give(up: use, in: &change)
      }
      guard candidates.isEmpty else { continue }
      // A batch that does not fit by itself keeps what it puts last.
      for key in change.keys where room?.isLacking == true {
        guard let length = change.puts.removeValue(forKey: key) else { continue }
        change.victims.append((0, key))
        room?.give(length)
      }
      return
    }
  }

  /// - Returns: false where the entry is gone already.
  @discardableResult
  private func give(up use: UseOrder.Use, in change: inout Change) throws(TidemarkError) -> Bool {
    // An entry that was replaced behind the cache's back makes room as the key's newest one.
    guard let entry = try reader.entryIfKept(at: use.sequence),
      let slot = try reader.slot(ofKey: entry.key.rawSpan), slot.isLiveCached
    else {
      withState { _ = $0.order?.remove(use.sequence) }
      return false
    }
    change.victims.append((slot.sequence, entry.key))
    if slot.sequence != use.sequence { change.victims.append((use.sequence, [])) }
    return true
  }

  /// So many entries are looked at with each write, whether they are to expire.
  private static let looksPerWrite = 8

  /// Lets entries go that have been valid no more for longer than the policy keeps them, as far as
  /// they are among those that are looked at this time.
  func expire(with change: inout Change) throws(TidemarkError) {
    let policy = policy
    guard let longest = policy.maxStale else { return }
    let uses = withState { state in
      state.order?.next(Self.looksPerWrite, from: &state.hand) ?? []
    }
    let now = now
    let written = Set(change.former.values)
    let duration = Int64(clamping: longest.wholeMilliseconds)
    for use in uses where !written.contains(use.sequence) {
      guard try isStale(use, at: now, for: duration, policy) else { continue }
      if try give(up: use, in: &change) { change.expired += 1 }
    }
  }

  /// The entries that have to go, as far as is known, and the room that this leaves.
  private func candidates(
    for change: Change, without gone: Set<UInt64>, _ policy: CachePolicy
  ) -> ([UseOrder.Use], Room?) {
    withState { state in
      guard let order = state.order else { return ([], nil) }
      var room = Room(policy, order, change, without: gone)
      var candidates: [UseOrder.Use] = []
      guard room.isLacking else { return ([], room) }
      state.order?.forEach { use in
        guard room.isLacking else { return false }
        guard !gone.contains(use.sequence) else { return true }
        candidates.append(use)
        room.give(use.bytes)
        return true
      }
      return (candidates, room)
    }
  }

  /// Bytes that an entry takes in log and index besides its key and value. A cache's size includes
  /// them for each entry beyond the first `entriesUncounted`.
  private static let entriesUncounted = 4_096
  static let entryBytes = 192

  /// The entries that a cache would have, against its bounds.
  private struct Room {
    let policy: CachePolicy
    var count: Int
    var bytes = 0

    init(_ policy: CachePolicy, _ order: UseOrder, _ change: Change, without gone: Set<UInt64>) {
      self.policy = policy
      count = order.count + change.puts.count
      bytes = order.bytes + change.puts.values.reduce(0, +)
      for sequence in gone {
        if let use = order[sequence] { give(use.bytes) }
      }
    }

    var isLacking: Bool {
      let places = CacheRegion.entryBytes * max(0, count - CacheRegion.entriesUncounted)
      return count > 0
        && (policy.capacity.map { count > $0 } ?? false
          || policy.bytes.map { bytes + places > $0 } ?? false)
    }

    mutating func give(_ length: Int) {
      count -= 1
      bytes -= length
    }
  }

  /// Takes note of what became of a batch. Where the index cannot be read, the order is found anew.
  func settle(_ change: Change) {
    let now = now.milliseconds
    var slots: [Slot?] = []
    for key in change.keys {
      do throws(TidemarkError) { slots.append(try reader.slot(ofKey: key.rawSpan)) } catch {
        return withState { $0.order = nil }
      }
    }
    var givenUp = 0
    let victims = change.victims.count { !$0.key.isEmpty }
    count {
      $0.evictions += victims - change.expired
      $0.expired += change.expired
    }
    withState { state in
      for (sequence, _) in change.victims {
        givenUp += state.order?.remove(sequence)?.bytes ?? 0
      }
      for (key, slot) in zip(change.keys, slots) {
        let former = change.former[key].flatMap { state.order?.remove($0) }
        givenUp += former?.bytes ?? 0
        guard let slot, slot.isLiveCached else { continue }
        state.order?.add(
          UseOrder.Use(
            sequence: slot.sequence, bytes: change.puts[key] ?? former?.bytes ?? 0, time: now,
            count: former?.count ?? 0))
      }
    }
    engine.attachments.noteGivenUp(givenUp)
    if victims > 0 { engine.store.tell(.evicted, entries: victims, bytes: givenUp) }
  }
}
