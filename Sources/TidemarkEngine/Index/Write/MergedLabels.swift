/// The part of an image that is about labels: posting lists, labels and sets of labels.
struct MergedLabels {
  private let input: MergeInput
  private let keys: MergedKeys
  private let keepsFormer: Bool
  private var lists: OldPostings?
  private var former: [UInt32] = []

  init(_ input: MergeInput, _ info: ImageInfo, _ keys: MergedKeys) {
    self.input = input
    self.keys = keys
    keepsFormer = info.keepFormerMembers
    lists = input.image.map(OldPostings.init)
  }

  mutating func write(to writer: inout SectionWriter) throws(IndexError) {
    let used = try writePostings(&writer)
    try writer.begin()
    var strings = StringTableBuilder(used: used.count, seed: input.seed)
    for label in 0..<keys.memberships.labelCount {
      try add(label, used.contains(label), input.labels, &strings, &writer)
    }
    try strings.finish((.labelOffsets, .labelBytes, .labelHash, .freeLabels), &writer)
    try writer.begin()
    var sets = StringTableBuilder(used: keys.usedSets.count, seed: input.seed)
    for set in 0..<Int(input.sets.nextID) {
      try add(set, keys.usedSets.contains(set), input.sets, &sets, &writer)
    }
    try sets.finish((.setOffsets, .setBytes, .setHash, .freeSets), &writer)
  }

  private func add(
    _ id: Int, _ isUsed: Bool, _ strings: StringInterner, _ builder: inout StringTableBuilder,
    _ writer: inout SectionWriter
  ) throws(IndexError) {
    guard isUsed else { return try builder.add(RawSpan(), to: &writer) }
    let string = try strings.string(UInt32(truncatingIfNeeded: id))
    try builder.add(string.rawSpan, to: &writer)
  }

  /// Writes all lists.
  /// - Returns: the labels that have members, present or former.
  private mutating func writePostings(
    _ writer: inout SectionWriter
  ) throws(IndexError) -> Bitmap {
    var used = Bitmap()
    var encoder = PostingEncoder()
    var entries = ByteWriter()
    let count = keys.memberships.labelCount
    try writer.begin()
    for label in 0..<count {
      let current = try keys.memberships.ordinals(of: label)
      try encoder.write(current, entries: &entries, to: &writer)
      try collectFormer(label, besides: current)
      try encoder.write(former[...], entries: &entries, to: &writer)
      if !current.isEmpty || !former.isEmpty { used.insert(label) }
    }
    writer.end(.postings, count: 2 * count)
    try writer.write(.labelLists, entries.bytes.rawSpan, count: count)
    return used
  }

  /// Collects the keys that ever carried a label, as far as anybody remembers, and do not now.
  private mutating func collectFormer(
    _ label: Int, besides current: ArraySlice<UInt32>
  ) throws(IndexError) {
    former.removeAll(keepingCapacity: true)
    guard keepsFormer else { return }
    try lists?.forEach(label) { old in
      former.append(keys.newOrdinals[Int(old)])
    }
    if let index = input.frozenLabels.index(of: UInt32(truncatingIfNeeded: label)) {
      input.frozenLabels.candidates[index].forEach { number in
        former.append(keys.newOrdinalsOfFrozen[number])
      }
    }
    former.sort()
    var kept = 0
    var next = current.startIndex
    for ordinal in former {
      if ordinal == MergedKeys.dropped { break }
      if kept > 0, former[kept - 1] == ordinal { continue }
      while next < current.endIndex, current[next] < ordinal { next += 1 }
      if next < current.endIndex, current[next] == ordinal { continue }
      former[kept] = ordinal
      kept += 1
    }
    former.removeLast(former.count - kept)
  }
}

/// The posting lists of the image that a merge replaces, label by label.
struct OldPostings {
  private let image: Image
  private var entries: ImageWindow
  private var postings: ImageWindow
  /// Bytes of the lists so far. Lists do not overlap, so they are no longer than their section;
  /// otherwise a small image could ask for any amount of memory and time.
  private var total = 0

  init(_ image: Image) {
    self.image = image
    entries = ImageWindow(image)
    postings = ImageWindow(image)
  }

  /// How many keys carry a label.
  mutating func currentCount(_ label: Int) throws(IndexError) -> Int {
    guard label < image.labelCount else { return 0 }
    return try list(label, .current).count
  }

  /// Calls `body` with all ordinals that carry a label or used to.
  mutating func forEach(_ label: Int, _ body: (UInt32) -> Void) throws(IndexError) {
    guard label < image.labelCount else { return }
    for kind in [ImagePostings.Kind.current, .former] {
      let list = try list(label, kind)
      try postings.load(.postings, list.offset, list.bytes)
      try list.forEach(in: postings.bytes(.postings, list.offset, list.bytes), body)
    }
  }

  private mutating func list(
    _ label: Int, _ kind: ImagePostings.Kind
  ) throws(IndexError) -> ImagePostings {
    let place = (2 * label + kind.rawValue) * ImageLayout.listBytes
    try entries.load(.labelLists, place, ImageLayout.listBytes)
    let list = try ImagePostings(
      image, entry: entries.bytes(.labelLists, place, ImageLayout.listBytes), at: place)
    total += list.bytes
    guard total <= image.header[.postings].bytes else { throw image.damage(.labelLists, place) }
    return list
  }
}
