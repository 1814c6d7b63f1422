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
    let former = Set(change.former.values)
    var victims = Set(change.victims.map(\.sequence))
    while true {
      let (candidates, isFull) = candidates(for: change, but: former, victims, policy)
      for use in candidates {
        victims.insert(use.sequence)
        try give(up: use, in: &change)
      }
      if candidates.isEmpty {
        if isFull { dropFirstPuts(of: &change, but: former, victims, policy) }
        return
      }
    }
  }

  private func give(up use: UseOrder.Use, in change: inout Change) throws(TidemarkError) {
    // An entry that was replaced behind the cache's back makes room as the key's newest one.
    guard let entry = try engine.reader.entryIfKept(at: use.sequence),
      let slot = try engine.reader.slot(ofKey: entry.key.rawSpan), slot.isLiveCached
    else { return forget(use.sequence) }
    change.victims.append((slot.sequence, entry.key))
    if slot.sequence != use.sequence { change.victims.append((use.sequence, [])) }
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
      let before = change.victims.count
      try give(up: use, in: &change)
      change.expired += change.victims.count > before ? 1 : 0
    }
  }

  /// The entries that have to go, as far as is known, and whether the batch itself is too large.
  private func candidates(
    for change: Change, but former: Set<UInt64>, _ victims: Set<UInt64>, _ policy: CachePolicy
  ) -> ([UseOrder.Use], isFull: Bool) {
    withState { state in
      guard let order = state.order else { return ([], false) }
      var room = Room(policy, order, change, without: former.union(victims))
      guard room.isLacking else { return ([], false) }
      var candidates: [UseOrder.Use] = []
      state.order?.forEach { use in
        guard room.isLacking else { return false }
        guard !former.contains(use.sequence), !victims.contains(use.sequence) else { return true }
        candidates.append(use)
        room.give(use.bytes)
        return true
      }
      return (candidates, room.isLacking)
    }
  }

  /// A batch that does not fit by itself keeps what it puts last.
  private func dropFirstPuts(
    of change: inout Change, but former: Set<UInt64>, _ victims: Set<UInt64>, _ policy: CachePolicy
  ) {
    let none = UseOrder()
    var room = withState { state in
      Room(policy, state.order ?? none, change, without: former.union(victims))
    }
    for key in change.keys where room.isLacking {
      guard let length = change.puts.removeValue(forKey: key) else { continue }
      change.victims.append((0, key))
      room.give(length)
    }
  }

  private func forget(_ sequence: UInt64) { _ = withState { $0.order?.remove(sequence) } }

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
    let now = self.now
    var uses: [(former: UInt64?, use: UseOrder.Use?)] = []
    for key in change.keys {
      let former = change.former[key]
      let slot: Slot?
      do throws(TidemarkError) { slot = try engine.reader.slot(ofKey: key.rawSpan) } catch {
        return withState { $0.order = nil }
      }
      guard let slot, slot.isLiveCached else {
        uses.append((former, nil))
        continue
      }
      let known = former.flatMap { self.use(of: $0) }
      var use = UseOrder.Use(
        sequence: slot.sequence, bytes: change.puts[key] ?? known?.bytes ?? 0,
        time: now.milliseconds)
      use.count = known?.count ?? 0
      uses.append((former, use))
    }
    var givenUp = 0
    count {
      $0.evictions += change.victims.count { !$0.key.isEmpty } - change.expired
      $0.expired += change.expired
    }
    withState { state in
      for (sequence, _) in change.victims {
        givenUp += state.order?[sequence]?.bytes ?? 0
        state.order?.remove(sequence)
      }
      for (former, use) in uses {
        if let former {
          givenUp += state.order?[former]?.bytes ?? 0
          state.order?.remove(former)
        }
        if let use { state.order?.add(use) }
      }
    }
    engine.attachments.noteGivenUp(givenUp)
  }
}
