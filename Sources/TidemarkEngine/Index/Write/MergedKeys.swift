/// The part of an image that is about keys: blocks and hash table. Collects for the labels what
/// only this pass sees.
struct MergedKeys {
  /// Stands for a key that is not in the new image.
  static let dropped = UInt32.max

  private let input: MergeInput
  private let info: ImageInfo
  private var hash: HashBuilder
  private(set) var memberships: MembershipBuilder
  /// Sets that some key has.
  private(set) var usedSets = Bitmap()
  /// New ordinals by old ordinal and by slot of the frozen delta; empty if nobody needs them.
  private(set) var newOrdinals: [UInt32] = []
  private(set) var newOrdinalsOfFrozen: [UInt32] = []
  private(set) var count = 0
  private(set) var liveCount = 0
  private var ids: [UInt32] = []
  private var idsSet: UInt32 = 0

  private(set) var longestProbe = 0

  init(_ input: MergeInput, _ info: ImageInfo) throws(IndexError) {
    self.input = input
    self.info = info
    hash = HashBuilder(keys: input.keys)
    memberships = MembershipBuilder(counts: try input.labelCounts())
    if info.keepFormerMembers, memberships.labelCount > 0 {
      newOrdinals = [UInt32](repeating: Self.dropped, count: input.image?.count ?? 0)
      newOrdinalsOfFrozen = [UInt32](repeating: Self.dropped, count: input.frozen.count)
    }
  }

  mutating func write(to writer: inout SectionWriter) throws(IndexError) {
    var stream = MergeStream(input)
    var blocks = BlockBuilder()
    try writer.begin()
    while try stream.next() {
      var slot = stream.slot
      slot.labelSet = slot.effectiveLabelSet
      if slot.isDeleted, slot.sequence <= info.dropTombstonesThrough,
        !info.keptDeletes.contains(slot.sequence)
      {
        continue
      }
      let key = stream.key
      try blocks.add(key, slot, to: &writer)
      try hash.insert(KeyHash.hash(key, seed: input.seed), UInt32(truncatingIfNeeded: count))
      if slot.labelSet != 0 { try noteLabels(slot.labelSet) }
      noteOrdinal(stream.origin)
      if !slot.isDeleted { liveCount += 1 }
      count += 1
    }
    try blocks.finish(count, &writer)
    try hash.write(to: &writer)
    longestProbe = hash.longestProbe
    hash = HashBuilder(keys: 0)
  }

  private mutating func noteLabels(_ set: UInt32) throws(IndexError) {
    if set != idsSet {
      var ids = self.ids
      self.ids = []
      ids.removeAll(keepingCapacity: true)
      try input.sets.withString(set) { (string) throws(IndexError) in
        try LabelSetCoding.decode(string, into: &ids)
      }
      self.ids = ids
      idsSet = set
      usedSets.insert(Int(set))
    }
    for id in ids { try memberships.add(UInt32(truncatingIfNeeded: count), to: id) }
  }

  private mutating func noteOrdinal(_ origin: MergeStream.Origin) {
    guard memberships.labelCount > 0, info.keepFormerMembers else { return }
    let ordinal = UInt32(truncatingIfNeeded: count)
    switch origin {
    case .frozen(let number, let replaced):
      newOrdinalsOfFrozen[number] = ordinal
      if let replaced { newOrdinals[replaced] = ordinal }
    case .image(let old): newOrdinals[old] = ordinal
    }
  }
}
