package import TidemarkEngine

/// The way from one generation of a collection to the next: what is missing here, what is fetched
/// and waits under reserved keys, and the one commit that switches.
///
/// It decides nothing about sources and asks none, so that simulations can drive it.
package struct CollectionUpdate: Sendable {
  /// The way in which an item gets its value.
  enum Fate: UInt8 {
    /// The value that is here stays.
    case same
    /// The value that is here stays, and counts as valid again.
    case renewed
    /// The value has to be fetched.
    case missing
    /// The value was fetched.
    case staged
    /// The value could not be fetched.
    case failed
    /// The key holds, or held, what the user wrote.
    case owned
  }

  let store: Store
  let region: CacheRegion
  /// The items of the new generation.
  package let items: ItemTable
  private(set) var fates: [Fate]
  /// The sequences of the entries that the items' keys have now; 0 for none.
  private(set) var former: [UInt64]
  /// Entries that the collection has no more.
  private(set) var absent: [(key: [UInt8], sequence: UInt64)] = []
  /// Items that were staged before this began.
  private(set) var resumed = 0
  var state: CollectionState

  /// Compares a list with what is here.
  /// - Parameters:
  ///   - cache: the cache that is to equal the collection.
  ///   - items: the list.
  ///   - state: the facts about the generation that is to come.
  /// - Throws: `invalidArgument` for a cache whose bounds the collection may exceed.
  package init<Value>(
    _ cache: Cache<Value>, to items: consuming ItemTable, _ state: CollectionState
  ) throws(TidemarkError) {
    store = cache.store
    region = cache.region
    items.sort()
    guard cache.policy.bytes == nil, cache.policy.capacity ?? .max >= items.count else {
      throw TidemarkError(
        .invalidArgument,
        "the cache has a bound, and the collection \(items.count) items; use CachePolicy.manifest")
    }
    self.items = items
    self.state = state
    self.state.items = self.items.count
    fates = [Fate](repeating: .missing, count: self.items.count)
    former = [UInt64](repeating: 0, count: self.items.count)
    try compare()
    try findStaged()
  }

  /// Whether an item cannot be fetched, since it was listed with different hashes. Data of the
  /// program's is a log, of which the last line counts.
  func isAmbiguous(_ index: Int) -> Bool { !state.isPrefilled && items.isAmbiguous(index) }

  /// Walks list and cache side by side, both in the order of keys.
  private mutating func compare() throws(TidemarkError) {
    var rows = try store.entries(EntryQuery(prefix: region.prefix, values: false))
    var next = 0
    while let entry = try rows.next() {
      let key = entry.key.bytes.rawSpan.extracting(droppingFirst: region.prefix.count)
      guard key.byteCount > 0 else { continue }
      while next < items.count, items.key(next).compare(to: key) < 0 { next += 1 }
      if next < items.count, items.key(next).isEqual(to: key) {
        former[next] = entry.sequence
        fates[next] = try fate(of: next, with: entry)
        next += 1
      } else if entry.storageClass == .cache, try !ranksAbove(entry) {
        absent.append((entry.key.bytes, entry.sequence))
      }
    }
    // A cached value must not hide that the user has deleted the key.
    for index in fates.indices where former[index] == 0 {
      if try isOwned(full(index)) { fates[index] = .owned }
    }
  }

  private func fate(of index: Int, with entry: Entry) throws(TidemarkError) -> Fate {
    guard entry.storageClass == .cache else { return .owned }
    if try ranksAbove(entry) { return .same }
    guard !isAmbiguous(index), let known = entry.hash,
      known.rawSpan.isEqual(to: items.hash(index))
    else { return .missing }
    return entry.maxAgeSeconds == Validity.staleMark ? .renewed : .same
  }

  /// Whether an entry stays whatever the list says: the program's data takes the place of nothing
  /// but what came with the program.
  private func ranksAbove(_ entry: Entry) throws(TidemarkError) -> Bool {
    guard state.isPrefilled else { return false }
    let newest = try region.engine.reader.entryIfKept(at: entry.sequence)
    return try newest?.attributes().generation != Self.prefilled
  }

  /// The mark of entries that came with the program.
  private static let prefilled = Array("prefilled".utf8)

  private func isOwned(_ key: [UInt8]) throws(TidemarkError) -> Bool {
    try region.engine.reader.slot(ofKey: key.rawSpan)?.size.isCached == false
  }

  /// Finds the items that a sync before had fetched, by their hashes.
  private mutating func findStaged() throws(TidemarkError) {
    let prefix = ReservedKeys.staged + region.prefix
    var rows = try store.entries(EntryQuery(prefix: prefix, values: false))
    while let entry = try rows.next() {
      let key = entry.key.bytes.rawSpan.extracting(droppingFirst: prefix.count)
      guard let index = index(of: key, entry.hash, .missing), !isAmbiguous(index),
        try isHere(entry.attachment)
      else { continue }
      fates[index] = .staged
      resumed += 1
    }
  }

  /// Whether the content of an attachment is in the store; of none nothing is missing.
  private func isHere(_ attachment: AttachmentReference?) throws(TidemarkError) -> Bool {
    guard let attachment else { return true }
    return try region.engine.attachments.contains(attachment.engineID)
  }

  /// The key of an item in the store.
  private func full(_ index: Int) -> [UInt8] {
    var key = region.prefix
    key.append(copying: items.key(index))
    return key
  }

  /// How many items need no value, since theirs is here or the key is the user's.
  package var settled: Int { fates.count { $0 == .same || $0 == .renewed || $0 == .owned } }

  /// The items that have to be fetched.
  package var missing: [Int] { fates.indices.filter { fates[$0] == .missing } }

  /// The number of an item; nil where the list has none with this hash, or it has another fate.
  func index(of key: RawSpan, _ hash: [UInt8]?, _ fate: Fate) -> Int? {
    guard let index = items.index(of: key), fates[index] == fate,
      hash?.rawSpan.isEqual(to: items.hash(index)) == true
    else { return nil }
    return index
  }

  /// Whether the switch changes anything but what is known about the collection.
  var changesEntries: Bool {
    !absent.isEmpty || fates.contains { $0 == .staged || $0 == .renewed }
  }
}

// MARK: - Fetched items

extension CollectionUpdate {
  /// An item that was fetched.
  package struct FetchedItem: Sendable {
    /// Its number in the list.
    package var index: Int
    /// The value, encoded.
    package var value: [UInt8]
    /// Nil for those that the key has.
    package var labels: [EntryLabel]?
    /// For how many seconds it is valid; nil for the cache's policy.
    package var maxAge: UInt32?
    /// Keeps the attachment until it is staged.
    var attachment: StagedAttachment?

    package init(
      index: Int, value: [UInt8], labels: [EntryLabel]? = nil, maxAge: UInt32? = nil,
      attachment: StagedAttachment? = nil
    ) {
      self.index = index
      self.value = value
      self.labels = labels
      self.maxAge = maxAge
      self.attachment = attachment
    }
  }

  /// Checks what no batch could keep, so that one item does not hold the others.
  /// - Throws: `invalidArgument`.
  func check(_ labels: [EntryLabel]?, _ attachment: StagedAttachment?) throws(TidemarkError) {
    var batch = OperationBatch()
    _ = try batch.addLabelSet((labels ?? []).map(\.bytes))
    guard try isHere(attachment?.reference) else {
      throw TidemarkError(
        .invalidArgument, "the item's attachment is in another store; write it to this one")
    }
  }

  /// The batch that keeps fetched items under reserved keys until the switch.
  package func staging(_ fetched: [FetchedItem]) throws(TidemarkError) -> WriteBatch {
    var batch = WriteBatch()
    // A delete that an import has brought must not stop the sync for ever.
    batch.operations.mayCoverOwned = true
    for item in fetched {
      let key = ReservedKeys.staged + full(item.index)
      var labels = item.labels
      if labels == nil, former[item.index] > 0 {
        labels = try store.entry(forKey: full(item.index), values: false, walks: false)?.labels
      }
      let set = try batch.operations.addLabelSet((labels ?? []).map(\.bytes))
      try batch.operations.add(
        .put, key: key.rawSpan, value: item.value.rawSpan, labelSet: set,
        attributes: attributes(
          hash: [UInt8](copying: items.hash(item.index)), maxAge: item.maxAge,
          item.attachment?.hold.id))
    }
    return batch
  }

  private func attributes(
    hash: [UInt8]? = nil, maxAge: UInt32?, _ attachment: AttachmentID? = nil
  ) -> EntryAttributes {
    var attributes = EntryAttributes(
      cachedAt: region.now, hash: hash, maxAge: maxAge, attachment: attachment)
    if state.isPrefilled { attributes.generation = Self.prefilled }
    return attributes
  }

  /// Notes that a batch of fetched items was committed.
  package mutating func noteStaged(_ fetched: [FetchedItem]) {
    for item in fetched { fates[item.index] = .staged }
  }

  /// Notes that an item could not be fetched.
  package mutating func noteFailed(_ index: Int) {
    fates[index] = .failed
    state.outstanding += 1
  }
}

// MARK: - The switch

extension CollectionUpdate {
  /// The commit that switches: all that is new, all that goes, and the facts about the generation.
  ///
  /// It is one batch, so that readers see either generation and a crash leaves either. Only a
  /// planted bug makes two of it.
  package func switching() throws(TidemarkError) -> [WriteBatch] {
    var batches = [WriteBatch()]
    try moveStaged(into: &batches[0].operations)
    if PlantedBug.isOn(.generationSwitchedHalf) { batches.append(WriteBatch()) }
    try finish(&batches[batches.count - 1].operations)
    return batches
  }

  private func moveStaged(into batch: inout OperationBatch) throws(TidemarkError) {
    let prefix = ReservedKeys.staged + region.prefix
    var rows = try store.entries(EntryQuery(prefix: prefix))
    while let entry = try rows.next() {
      try batch.addEviction(of: entry.key.bytes.rawSpan, at: entry.sequence)
      let key = entry.key.bytes.rawSpan.extracting(droppingFirst: prefix.count)
      // A sync that was given up may have left what is right no more.
      guard let index = index(of: key, entry.hash, .staged) else { continue }
      let full = full(index)
      // The user may have written the key since the comparison.
      guard try !isOwned(full) else { continue }
      let set = try batch.addLabelSet(entry.labels.map(\.bytes))
      try batch.add(
        .put, key: full.rawSpan, value: entry.value.rawSpan, labelSet: set,
        attributes: attributes(
          hash: entry.hash, maxAge: entry.maxAgeSeconds, entry.attachment?.engineID))
    }
  }

  private func finish(_ batch: inout OperationBatch) throws(TidemarkError) {
    for entry in absent { try batch.addEviction(of: entry.key.rawSpan, at: entry.sequence) }
    for index in fates.indices where former[index] > 0 {
      let maxAge: UInt32
      switch fates[index] {
      case .renewed: maxAge = Validity.seconds(region.policy.maxAge)
      // The value that is here is known to be an old one.
      case .failed: maxAge = Validity.staleMark
      case .same, .missing, .staged, .owned: continue
      }
      try batch.addTouch(of: full(index), at: former[index], attributes(maxAge: maxAge))
    }
    try batch.add(
      .put, key: ReservedKeys.collection(region.prefix).rawSpan, value: state.encoded.rawSpan,
      attributes: attributes(maxAge: nil))
  }
}
