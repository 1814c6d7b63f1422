// SAFETY: keys lie in the layers that the walk keeps; a span ends before the next step.

/// Merges cursors over the layers of an index (memtables above sorted runs) into
/// one walk in key order. Of a key that several layers have, the newest layer's slot counts.
/// Made and used up within one hold of the lock of the index's owner.
///
/// A cursor may be over the lists of some labels. Then a newer layer can have a key that its cursor
/// passes over, since the key neither carries these labels there nor lost them there.
struct IndexWalk {
  /// How many keys a page may pass over for each it may return: bounds how long the lock is held.
  private static let skipsPerKey = 8
  private static let leastSkips = 512

  private let index: Index
  /// Newest first, all above the sorted runs.
  private var memtables: [MemtableCursor]
  /// Newest first, all beneath the memtables.
  private let runs: [RunCursor]
  private var filter: SlotFilter
  private let descending: Bool
  /// Whether a key that only older layers' cursors meet is looked up in the whole index. For walks
  /// whose filter takes every slot; other filters refuse the older slot of such a key anyway.
  private let looksUpNewest: Bool
  /// The newest layer that has the next key, counted from the newest memtable; -1 at the end.
  private var winner = -1
  /// The layer whose key comes next after the winner's; -1 if all others are at their ends.
  private var second = -1
  /// Whether older layers have the winner's key, too.
  private var isShared = false
  /// Memory of `takeWinner`, kept from one call to the next.
  private var bound: [UInt8] = []

  init(
    _ index: Index, memtables: [MemtableCursor], runs: [RunCursor], filter: SlotFilter,
    descending: Bool, looksUpNewest: Bool = false
  ) {
    self.index = index
    self.memtables = memtables
    self.runs = runs
    self.filter = filter
    self.descending = descending
    self.looksUpNewest = looksUpNewest
  }

  private var layers: Int { memtables.count + runs.count }

  /// Fills a page, which ends short where too many keys are not wanted.
  /// - Returns: whether the end was reached.
  mutating func fill(_ page: inout KeyPage, limit: Int) throws(IndexError) -> Bool {
    page.removeAll()
    let limit = max(1, limit)
    var skips = Self.leastSkips + limit * Self.skipsPerKey
    try chooseLayers()
    while page.count < limit {
      guard winner >= 0 else { return true }
      if !isShared, winner >= memtables.count, runs[winner - memtables.count].isAll,
        winner == 0 || !looksUpNewest, try takeWinner(&page, limit)
      {
        try chooseLayers()
        continue
      }
      if let slot = try wantedSlot() {
        page.append(try key(winner), slot)
      } else {
        skips -= 1
        if skips <= 0 {
          // The next page begins behind this key, so each one gets further.
          page.markSeen(try key(winner))
          return false
        }
      }
      try advance()
    }
    return false
  }

  /// Takes keys from the winner, a sorted run, as long as they come before `second`'s key: no other
  /// layer has these. A key that is not wanted ends this, so that `fill` counts it.
  /// - Returns: false when it stopped at a key that is not wanted, or has taken none.
  private mutating func takeWinner(_ page: inout KeyPage, _ limit: Int) throws(IndexError) -> Bool {
    var bound: [UInt8] = []
    swap(&bound, &self.bound)
    defer { self.bound = bound }
    bound.removeAll(keepingCapacity: true)
    if second >= 0 { bound.append(copying: try key(second)) }
    let descending = descending
    var filter = filter
    let before = page.count
    var isWanted = true
    try runs[winner - memtables.count].takeWhile { (key, slot) throws(IndexError) in
      guard page.count < limit else { return false }
      if !bound.isEmpty {
        let order = key.compare(to: bound.rawSpan)
        guard descending ? order > 0 : order < 0 else { return false }
      }
      isWanted = try filter.passes(slot)
      if isWanted { page.append(key, slot) }
      return isWanted
    }
    self.filter = filter
    return isWanted && page.count > before
  }

  /// The newest slot of the winner's key; nil if the filter refuses it.
  @inline(__always)
  private mutating func wantedSlot() throws(IndexError) -> Slot? {
    // The filter is not asked: it takes every slot where `looksUpNewest` is set.
    if looksUpNewest, winner > 0 {
      let key = try key(winner)
      return try index.lookup(key, hash: index.hash(key))
    }
    let slot: Slot?
    if winner < memtables.count {
      let cursor = memtables[winner]
      slot = cursor.number.map(cursor.memtable.store.slot)
    } else {
      let runs = runs.span
      slot = try runs[winner - memtables.count].slot()
    }
    guard let slot, try filter.passes(slot) else { return nil }
    return slot
  }

  /// Goes to the next key, in all layers that have the present one.
  private mutating func advance() throws(IndexError) {
    if isShared {
      for layer in (winner + 1)..<layers where hasKey(layer) {
        if try order(layer, winner) == 0 { try advance(layer) }
      }
    }
    try advance(winner)
    // Most keys come from one layer, the oldest run: it stays the winner up to `second`'s key.
    if !isShared, hasKey(winner) {
      if second < 0 { return }
      if try order(winner, second) < 0 { return }
    }
    try chooseLayers()
  }

  /// Finds the layers with the next two keys. Of equal keys the newer layer's wins: it comes first.
  private mutating func chooseLayers() throws(IndexError) {
    winner = -1
    second = -1
    isShared = false
    for layer in 0..<layers where hasKey(layer) {
      guard winner >= 0 else {
        winner = layer
        continue
      }
      let order = try order(layer, winner)
      if order == 0 {
        isShared = true
      } else if order < 0 {
        second = winner
        winner = layer
        isShared = false
      } else if second < 0 {
        second = layer
      } else if try self.order(layer, second) < 0 {
        second = layer
      }
    }
  }

  @inline(__always)
  private func hasKey(_ layer: Int) -> Bool {
    layer < memtables.count
      ? memtables[layer].number != nil : runs[layer - memtables.count].ordinal != nil
  }

  /// Below zero if the key of layer `a` comes first in the walk.
  @inline(__always)
  private func order(_ a: Int, _ b: Int) throws(IndexError) -> Int {
    let order = try key(a).compare(to: try key(b))
    return descending ? -order : order
  }

  @_lifetime(borrow self)
  private func key(_ layer: Int) throws(IndexError) -> RawSpan {
    if layer < memtables.count {
      guard let number = memtables[layer].number else { return RawSpan() }
      let store = memtables[layer].memtable.store
      return unsafe _overrideLifetime(store.key(number), borrowing: self)
    }
    // A span lends its elements, where an array would retain them for each key.
    let runs = runs.span
    guard let ordinal = runs[layer - memtables.count].ordinal else { return RawSpan() }
    return unsafe _overrideLifetime(try runs[layer - memtables.count].key(ordinal), borrowing: self)
  }

  private mutating func advance(_ layer: Int) throws(IndexError) {
    if layer < memtables.count {
      memtables[layer].advance()
    } else {
      let runs = runs.span
      try runs[layer - memtables.count].advance()
    }
  }
}
