// SAFETY: keys lie in the layers that the walk keeps; a span ends before the next step.

/// Merges the walks over the layers of an index; the topmost layer that has a key decides.
struct IndexWalk {
  private let index: Index
  /// Newest first, all above the images.
  private var deltas: [DeltaCursor]
  /// Newest first.
  private let images: [ImageCursor]
  private var filter: SlotFilter
  private let descending: Bool
  /// Whether the layers above may have the key without naming it here, so that its newest slot is
  /// to be looked up.
  private let looksUp: Bool
  /// The layer that has the next key, and the newest if several have it; -1 at the end. Layers
  /// count from the newest, deltas first.
  private var winner = -1
  /// The layer whose key comes next after the winner's; -1 if no other has any left.
  private var second = -1
  /// Whether older layers have the winner's key, too.
  private var isShared = false
  /// The key that ends what can be taken from the winner at once; empty for none.
  private var bound: [UInt8] = []

  init(
    _ index: Index, deltas: [DeltaCursor], images: [ImageCursor], filter: SlotFilter,
    descending: Bool, looksUp: Bool = false
  ) {
    self.index = index
    self.deltas = deltas
    self.images = images
    self.filter = filter
    self.descending = descending
    self.looksUp = looksUp
  }

  private var layers: Int { deltas.count + images.count }

  /// Fills a page.
  /// - Parameters:
  ///   - page: where keys are appended.
  ///   - limit: most keys in the page.
  ///   - looks: about how many keys may be passed over.
  /// - Returns: whether the end was reached.
  mutating func fill(
    _ page: inout KeyPage, limit: Int, looks: Int
  ) throws(IndexError) -> Bool {
    var looks = looks
    try choose()
    while page.count < limit {
      guard winner >= 0 else { return true }
      if !isShared, winner >= deltas.count, images[winner - deltas.count].isAll,
        winner == 0 || !looksUp, try takeWinner(&page, limit)
      {
        try choose()
        continue
      }
      if let slot = try wantedSlot() {
        page.append(try key(winner), slot)
      } else {
        // The page ends at a key that was looked at, so that the next one gets further.
        looks -= 1
        if looks <= 0 {
          page.markSeen(try key(winner))
          return false
        }
      }
      try advance()
    }
    return false
  }

  /// Takes the winner's keys that come before those of all other layers.
  /// - Returns: false when it stopped at one that is not wanted, or cannot take any in this way.
  private mutating func takeWinner(
    _ page: inout KeyPage, _ limit: Int
  ) throws(IndexError) -> Bool {
    var bound: [UInt8] = []
    swap(&bound, &self.bound)
    defer { self.bound = bound }
    bound.removeAll(keepingCapacity: true)
    if second >= 0 { bound.append(copying: try key(second)) }
    let descending = descending
    var filter = filter
    let before = page.count
    var isWanted = true
    try images[winner - deltas.count].takeAll { (key, slot) throws(IndexError) in
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

  /// The newest slot of the winner's key, if it is wanted.
  @inline(__always)
  private mutating func wantedSlot() throws(IndexError) -> Slot? {
    if looksUp, winner > 0 {
      let key = try key(winner)
      return try index.lookup(key, hash: index.hash(key))
    }
    let slot: Slot?
    if winner < deltas.count {
      let cursor = deltas[winner]
      slot = cursor.number.map(cursor.delta.store.slot)
    } else {
      let images = images.span
      slot = try images[winner - deltas.count].slot()
    }
    guard let slot, try filter.passes(slot) else { return nil }
    return slot
  }

  /// Goes to the next key.
  private mutating func advance() throws(IndexError) {
    if isShared {
      for layer in (winner + 1)..<layers where hasKey(layer) {
        if try order(layer, winner) == 0 { try advance(layer) }
      }
    }
    try advance(winner)
    // Most keys of a walk come from one layer, the oldest: it goes on up to the next of another.
    if !isShared, hasKey(winner) {
      if second < 0 { return }
      if try order(winner, second) < 0 { return }
    }
    try choose()
  }

  /// Finds the layers with the next two keys.
  private mutating func choose() throws(IndexError) {
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
    layer < deltas.count
      ? deltas[layer].number != nil : images[layer - deltas.count].ordinal != nil
  }

  /// Below zero if the key of layer `a` comes first in the walk.
  @inline(__always)
  private func order(_ a: Int, _ b: Int) throws(IndexError) -> Int {
    let order = try key(a).compare(to: try key(b))
    return descending ? -order : order
  }

  @_lifetime(borrow self)
  private func key(_ layer: Int) throws(IndexError) -> RawSpan {
    if layer < deltas.count {
      guard let number = deltas[layer].number else { return RawSpan() }
      let store = deltas[layer].delta.store
      return unsafe _overrideLifetime(store.key(number), borrowing: self)
    }
    // A span lends its elements, where an array would retain them for each key.
    let images = images.span
    guard let ordinal = images[layer - deltas.count].ordinal else { return RawSpan() }
    return unsafe _overrideLifetime(
      try images[layer - deltas.count].key(ordinal), borrowing: self)
  }

  private mutating func advance(_ layer: Int) throws(IndexError) {
    if layer < deltas.count {
      deltas[layer].advance()
    } else {
      let images = images.span
      try images[layer - deltas.count].advance()
    }
  }
}
