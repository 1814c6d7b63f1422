/// Writes the labels of a new run of the index: posting lists, labels and sets of labels. The keys
/// were written before, and `keys` has what that pass has collected.
struct MergedLabels {
  private let input: MergeInput
  private let keys: MergedKeys
  /// Ordinals of keys that a layer lists for the present label and that do not carry it any more.
  private var former: [UInt32] = []
  /// Ids of the labels that the run names, ascending.
  private var used: [UInt32] = []

  init(_ input: MergeInput, _ keys: MergedKeys) {
    self.input = input
    self.keys = keys
  }

  mutating func write(to writer: inout SectionWriter) throws(IndexError) {
    try writePostings(&writer)
    try write(used, of: input.labels, (.labelOffsets, .labelBytes, .labelHash), &writer)
    try write(keys.usedSets.sorted(), of: input.sets, (.setOffsets, .setBytes, .setHash), &writer)
  }

  private func write(
    _ ids: [UInt32], of strings: StringInterner, _ sections: StringTableBuilder.Sections,
    _ writer: inout SectionWriter
  ) throws(IndexError) {
    try writer.begin()
    var table = StringTableBuilder(count: ids.count, seed: input.seed)
    for id in ids {
      let string = try strings.string(id)
      try table.add(id, string.rawSpan, to: &writer)
    }
    try table.finish(sections, &writer)
  }

  /// Writes two lists for each label, its carriers and its former ones, and the section of labels.
  private mutating func writePostings(_ writer: inout SectionWriter) throws(IndexError) {
    var encoder = PostingEncoder()
    var entries = ByteWriter()
    var labels = try MergedLabelReader(input)
    try writer.begin()
    while try labels.next() {
      let current = keys.memberships.ordinals(of: labels.id)
      try collectFormer(&labels, besides: current)
      let count = try labels.count()
      // `count` has the carriers in runs beneath, too; a whole run has none beneath.
      guard count >= current.count, !input.isWhole || count == current.count else {
        throw MembershipBuilder.inconsistent
      }
      if current.isEmpty, former.isEmpty { continue }
      used.append(labels.id)
      entries.u32(labels.id)
      entries.u32(UInt32(clamping: count))
      try encoder.write(current, entries: &entries, to: &writer)
      try encoder.write(former[...], entries: &entries, to: &writer)
    }
    writer.end(.postings, count: 2 * used.count)
    try writer.write(.labels, entries.bytes.rawSpan, count: used.count)
  }

  /// Collects into `former` the keys that are listed for a label and are not in `current`.
  private mutating func collectFormer(
    _ labels: inout MergedLabelReader, besides current: ArraySlice<UInt32>
  ) throws(IndexError) {
    former.removeAll(keepingCapacity: true)
    guard !keys.newOrdinals.isEmpty else { return }
    var found = former
    former = []
    try labels.forEachPlace { found.append(keys.newOrdinals[$0.layer][$0.number]) }
    found.sort()
    var kept = 0
    var next = current.startIndex
    for ordinal in found {
      // Sorted last, as all that follow: keys that the new run does not have.
      if ordinal == MergedKeys.dropped { break }
      if kept > 0, found[kept - 1] == ordinal { continue }
      while next < current.endIndex, current[next] < ordinal { next += 1 }
      if next < current.endIndex, current[next] == ordinal { continue }
      found[kept] = ordinal
      kept += 1
    }
    found.removeLast(found.count - kept)
    former = found
  }
}
