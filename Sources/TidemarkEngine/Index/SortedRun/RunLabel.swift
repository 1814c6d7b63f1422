/// A label in a sorted run: how many keys carry it, and which of the
/// sorted run's keys. The bytes are told at ``RunLayout``.
struct RunLabel {
  let id: UInt32
  /// How many live keys of this run and all beneath carry the label.
  let count: Int
  /// Keys of this run that carry the label.
  let current: RunPostings
  /// Keys of this run that do not carry the label, but of which an older slot may have: a run
  /// beneath may list them as carriers, and in a view of the past they may carry it.
  let former: RunPostings

  /// - Parameter place: where `entry` stands in the section of labels.
  init(_ run: SortedRun, entry: RawSpan, at place: Int) throws(IndexError) {
    do throws(FormatError) {
      id = try entry.u32(at: 0)
      count = Int(try entry.u32(at: 4))
      guard count <= run.header.totalLiveKeys, Int(id) < run.header.nextLabel else {
        throw FormatError("label out of bounds")
      }
    } catch { throw run.damage(.labels, place) }
    let lists = 8..<(8 + RunLayout.listBytes)
    current = try RunPostings(run, entry: entry.extracting(lists), at: place)
    former = try RunPostings(
      run, entry: entry.extracting(droppingFirst: lists.upperBound), at: place)
  }
}

extension SortedRun {
  /// How many labels have a `current` or `former` list here.
  var labelCount: Int { header[.labels].count }

  /// A label by its place among those of the sorted run.
  func label(at number: Int) throws(IndexError) -> RunLabel {
    let place = number * RunLayout.labelBytes
    return try RunLabel(self, entry: try bytes(.labels, place, RunLayout.labelBytes), at: place)
  }

  /// A label by its id; nil if no key of the sorted run carries it or has lost it.
  func label(_ id: UInt32) throws(IndexError) -> RunLabel? {
    let index = try (0..<labelCount).partitioningIndex { (number) throws(IndexError) in
      try labelID(at: number) >= id
    }
    guard index < labelCount, try labelID(at: index) == id else { return nil }
    return try label(at: index)
  }

  private func labelID(at number: Int) throws(IndexError) -> UInt32 {
    let place = number * RunLayout.labelBytes
    let row = try bytes(.labels, place, RunLayout.labelBytes)
    guard let id = try? row.u32(at: 0) else { throw damage(.labels, place) }
    return id
  }
}
