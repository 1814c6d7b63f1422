/// Which segments a store compacts by itself.
///
/// The sealed segments from one on are merged into one, never some in between. Entries go only
/// where all segments take part. Nothing is begun that has nothing to gain.
struct CompactionChoice {
  /// The facts known of a sealed segment.
  struct Row {
    var segment: Manifest.Segment
    /// Raw bytes of entries in it that something newer has replaced.
    var superseded = SpaceUsage.Row()
    /// Whether it was rewritten in vain: only a drop could gain anything.
    var isLeftAlone = false
  }

  /// A segment is merged with the one before as long as that is at most so many times as long.
  ///
  /// Then 42 segments of equal size are written 4 times each on the way, and stand as 2 on the
  /// average; with 1 they are written 3 times and stand as 3, with 4 it is 6 times and 2.
  static let sizeRatio = 2

  /// By first sequence.
  let rows: [Row]
  /// Appended segments are put in order once they have so many raw bytes.
  let mergeFromBytes: Int
  /// Superseded data is dropped once it is at least so much.
  let dropFromBytes: Int
  /// The same for cached data, which is there to be replaced.
  let purgeFromBytes: Int
  /// Whether every version of everything is kept.
  let keepsAll: Bool

  /// Raw bytes of all entries that something newer has replaced.
  var supersededBytes: Int { rows.reduce(0) { $0 + $1.superseded.superseded } }

  /// The first segment, where half of all bytes may be such that can go; else nil.
  func firstToDrop() -> Int? {
    if !keepsAll, !rows.isEmpty, fits(from: 0) {
      let raw = rows.reduce(0) { $0 + $1.segment.rawBytes }
      let superseded = rows.reduce(0) { $0 + min($1.superseded.superseded, $1.segment.rawBytes) }
      if superseded >= dropFromBytes, superseded >= raw - superseded { return 0 }
    }
    return firstToPurge()
  }

  /// From which segment on enough of the bytes may be cached data that can go, as far back as
  /// possible: older segments need not take part, since all that a server has goes by itself.
  func firstToPurge() -> Int? {
    var (raw, cached) = (0, 0)
    var found: Int?
    for first in rows.indices.reversed() {
      raw += rows[first].segment.rawBytes
      cached += min(rows[first].superseded.cached, rows[first].segment.rawBytes)
      let pays = Self.paysToPurge(cached, of: raw, from: purgeFromBytes)
      if pays, fits(from: first) { found = first }
    }
    return found
  }

  /// Whether so much cached data can go that it pays: half of the bytes.
  /// - Parameter least: fewer bytes do not pay in any case.
  static func paysToPurge(_ cached: Int, of raw: Int, from least: Int) -> Bool {
    cached >= least && 2 * cached >= raw
  }

  /// From which segment on to merge for the order of keys alone; nil where that gains too little.
  func firstToMerge() -> Int? {
    guard
      var first = rows.lastIndex(where: { $0.segment.kind == .compacted }).map({ $0 + 1 })
        ?? rows.indices.first
    else { return nil }
    while first < rows.count, rows[first].isLeftAlone { first += 1 }
    guard first < rows.count else { return nil }
    var bytes = rows[first...].reduce(0) { $0 + $1.segment.rawBytes }
    // Where everything is kept a merge gains less, so that it waits for more.
    let all = rows.reduce(0) { $0 + $1.segment.rawBytes }
    guard bytes >= (keepsAll ? max(2 * mergeFromBytes, all / 8) : mergeFromBytes) else {
      return nil
    }
    while first > 0, rows[first - 1].segment.rawBytes <= Self.sizeRatio * bytes,
      fits(from: first - 1)
    {
      first -= 1
      bytes += rows[first].segment.rawBytes
    }
    return fits(from: first) ? first : nil
  }

  /// Whether the segments from one on fit into one.
  private func fits(from first: Int) -> Bool {
    let bytes = rows[first...].reduce(0) { $0 + CompactionPlan.boundedBytes($1.segment) }
    return bytes <= Limits.compactedSegmentBytes
      && CompactionPlan.fits(rows[first].segment.firstSequence, rows.last?.segment.lastSequence)
  }
}
