// SAFETY: keys lie in the layers that the walk keeps; a span ends before the next step.

/// Merges the walks over the layers of an index; the topmost layer that has a key decides.
struct IndexWalk {
  private enum Source {
    case active(Int)
    case frozen(Int)
    case image(Int)
  }

  private let index: Index
  private var active: DeltaCursor
  private var frozen: DeltaCursor?
  private let image: ImageCursor?
  private var filter: SlotFilter
  private let descending: Bool
  /// Ordinals of the image whose keys stand in a delta.
  private let overriddenByActive: Bitmap
  private let overriddenByFrozen: Bitmap
  /// Whether a lower layer's key that stands in a higher one too is met here as well, since the
  /// higher one's list may lack it. Its slot is the newest all the same.
  private let meetsOverridden: Bool
  /// The slot at the image's cursor if it is wanted.
  private var imageSlot: Slot?
  /// How many keys may still be passed over before the page ends.
  private var looks = 0

  init(
    _ index: Index, active: DeltaCursor, frozen: DeltaCursor?, image: ImageCursor?,
    filter: SlotFilter, descending: Bool, meetsOverridden: Bool = false
  ) {
    self.index = index
    self.active = active
    self.frozen = frozen
    self.image = image
    self.filter = filter
    self.descending = descending
    overriddenByActive = active.delta.overriddenOrdinals
    overriddenByFrozen = frozen?.delta.overriddenOrdinals ?? Bitmap()
    self.meetsOverridden = meetsOverridden
  }

  /// Fills a page.
  /// - Parameters:
  ///   - page: where keys are appended.
  ///   - limit: most keys in the page.
  ///   - looks: about how many keys may be passed over.
  /// - Returns: whether the end was reached.
  mutating func fill(
    _ page: inout KeyPage, limit: Int, looks: Int
  ) throws(IndexError) -> Bool {
    self.looks = looks
    try settleImage()
    while page.count < limit {
      if active.number == nil, frozen?.number == nil {
        try fillFromImage(&page, limit)
        if page.count == limit { break }
      }
      guard let source = try next() else { return true }
      if let slot = try slot(source) {
        page.append(try key(source), slot)
      } else {
        // The page ends at a key that was looked at, so that the next one gets further.
        self.looks -= 1
        if self.looks <= 0 {
          page.markSeen(try key(source))
          return false
        }
      }
      try advance(source)
    }
    return false
  }

  /// Takes keys of the image as long as they are wanted, when no other layer has any left.
  private mutating func fillFromImage(_ page: inout KeyPage, _ limit: Int) throws(IndexError) {
    guard let image else { return }
    while page.count < limit, let slot = imageSlot, let ordinal = image.ordinal {
      page.append(try image.key(ordinal), slot)
      try image.advance()
      try settleImage()
    }
  }

  /// The layer that has the next key.
  private mutating func next() throws(IndexError) -> Source? {
    while true {
      var best = active.number.map(Source.active)
      if let number = frozen?.number {
        let order = try order(.frozen(number), best)
        if order == 0 {
          frozen?.advance()
          continue
        }
        if order < 0 { best = .frozen(number) }
      }
      if let ordinal = image?.ordinal {
        let order = try order(.image(ordinal), best)
        if order == 0 {
          try advance(.image(ordinal))
          continue
        }
        if order < 0 { best = .image(ordinal) }
      }
      return best
    }
  }

  /// Below zero if `a` comes first in the walk; any key comes before none.
  @inline(__always)
  private func order(_ a: Source, _ b: Source?) throws(IndexError) -> Int {
    guard let b else { return -1 }
    let order = try key(a).compare(to: try key(b))
    return descending ? -order : order
  }

  @_lifetime(borrow self)
  private func key(_ source: Source) throws(IndexError) -> RawSpan {
    switch source {
    case .active(let number):
      let store = active.delta.store
      return unsafe _overrideLifetime(store.key(number), borrowing: self)
    case .frozen(let number):
      let store = (frozen ?? active).delta.store
      return unsafe _overrideLifetime(store.key(number), borrowing: self)
    case .image(let ordinal):
      guard let image else { return RawSpan() }
      return unsafe _overrideLifetime(try image.key(ordinal), borrowing: self)
    }
  }

  /// The newest slot of a source's key, if it is wanted.
  private mutating func slot(_ source: Source) throws(IndexError) -> Slot? {
    switch source {
    case .active(let number):
      let slot = active.delta.store.slot(number)
      return try filter.passes(slot) ? slot : nil
    case .frozen(let number):
      guard let delta = frozen?.delta else { return nil }
      if active.delta.overriddenSlots.contains(number) {
        guard meetsOverridden else { return nil }
        return newest(try key(source))
      }
      let slot = delta.store.slot(number)
      return try filter.passes(slot) ? slot : nil
    case .image:
      return imageSlot
    }
  }

  private mutating func advance(_ source: Source) throws(IndexError) {
    switch source {
    case .active: active.advance()
    case .frozen: frozen?.advance()
    case .image:
      try image?.advance()
      try settleImage()
    }
  }

  /// Passes over keys of the image that are not wanted, as long as looks remain.
  private mutating func settleImage() throws(IndexError) {
    imageSlot = nil
    guard let image else { return }
    while let ordinal = image.ordinal {
      if isOverridden(ordinal) {
        if meetsOverridden { imageSlot = newest(try image.key(ordinal)) }
      } else if let slot = try image.slot(), try filter.passesImage(slot) {
        imageSlot = slot
      }
      if imageSlot != nil { return }
      looks -= 1
      if looks <= 0 { return }
      try image.advance()
    }
  }

  private func isOverridden(_ ordinal: Int) -> Bool {
    overriddenByActive.contains(ordinal) || overriddenByFrozen.contains(ordinal)
  }

  private func newest(_ key: RawSpan) -> Slot? {
    index.lookupDeltas(key, hash: index.hash(key))
  }
}
