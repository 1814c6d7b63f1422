extension Index {
  /// Whether a delta is frozen, so that a merge is due or under way.
  package var isFrozen: Bool { frozen != nil }

  /// How many keys were written since the image, or since the last freeze.
  package var deltaKeys: Int { (frozen?.count ?? 0) + active.count }

  /// Freezes the active delta and begins a new one. No delta may be frozen.
  package func freeze() {
    precondition(frozen == nil, "a frozen delta must be merged first")
    frozen = active
    active = Delta()
    pendingInstall = nil
  }

  /// What the next image is made of: the frozen delta over the image. A delta must be frozen.
  ///
  /// The result may be used on another thread without the owner's lock.
  package func mergeInput() -> MergeInput {
    guard let frozen else { preconditionFailure("freeze before a merge") }
    return MergeInput(image: image, frozen: frozen, table: labelTable, seed: seed)
  }

  /// Gives up a merge whose image could not be written. The frozen delta stays and can be
  /// merged again.
  package func abandonMerge() {
    pendingInstall = nil
  }

  /// Looks up some keys of the active delta in an image that is about to be installed, so that
  /// ``install(_:)`` has little left to do and the owner's lock is never held for long.
  /// - Returns: whether nothing is left to do.
  package func prepareInstall(_ image: Image, limit: Int) throws(IndexError) -> Bool {
    var pending =
      if let pendingInstall, pendingInstall.image === image { pendingInstall } else {
        PendingInstall(image: image)
      }
    pendingInstall = nil
    let store = active.store
    let end = min(store.count, pending.next + max(1, limit))
    while pending.next < end {
      let key = store.key(pending.next)
      if let found = try image.lookup(key, hash: hash(key)) {
        pending.overridden.insert(found.ordinal)
      }
      pending.next += 1
    }
    let isDone = pending.next == store.count
    pendingInstall = pending
    return isDone
  }

  /// Puts an image written from ``mergeInput()`` under the active delta; drops the frozen delta
  /// and the old image.
  /// - Throws: nothing has changed then.
  package func install(_ image: Image) throws(IndexError) {
    guard image.header.seed == seed else {
      throw IndexError.imageInvalid(FormatError("image of another index"))
    }
    while try !prepareInstall(image, limit: Int.max / 2) {}
    let overridden = pendingInstall?.overridden ?? Bitmap()
    try labelTable.install(image, keeping: active)
    pendingInstall = nil
    active.overriddenOrdinals = overridden
    active.overriddenSlots = Bitmap()
    frozen = nil
    self.image = image
  }

  /// The labels that keys carry, in byte order, with the number of keys.
  package func labelCounts() throws(IndexError) -> [(label: [UInt8], count: Int)] {
    var counts: [(label: [UInt8], count: Int)] = []
    for id in 0..<labelTable.labels.nextID {
      let count = try count(ofLabel: id)
      if count > 0 { counts.append((try labelTable.label(id), count)) }
    }
    counts.sort { $0.label.rawSpan.compare(to: $1.label.rawSpan) < 0 }
    return counts
  }

  /// How many keys carry a label.
  package func count(ofLabel label: RawSpan) throws(IndexError) -> Int {
    guard let id = try labelTable.id(ofLabel: label) else { return 0 }
    return try count(ofLabel: id)
  }

  private func count(ofLabel id: UInt32) throws(IndexError) -> Int {
    var count = active.labels.change(of: id) + (frozen?.labels.change(of: id) ?? 0)
    if let image, Int(id) < image.labelCount {
      count += try ImagePostings(image, label: id, .current).count
    }
    return count
  }
}

/// What is known so far of the active delta's keys in an image that will be installed.
struct PendingInstall {
  let image: Image
  /// Slots below this were looked up.
  var next = 0
  /// Ordinals of the keys found.
  var overridden = Bitmap()
}
