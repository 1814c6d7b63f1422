/// Chooses the segments that a store compacts by itself, by counts alone.
///
/// A choice is the index of a row: that segment and all later ones are rewritten, never some in
/// between. Superseded data (replaced by newer entries) is dropped only where all segments take
/// part, but cached data, which a server has too, in any.
///
/// A merge for the order of keys has to be repaid: the index finds entries of any segment, so that
/// a full one that is compressed already waits until reads have lost enough time in it.
struct CompactionChoice {
  /// The counts of a sealed segment.
  struct Row {
    var segment: Manifest.Segment
    /// Raw bytes of entries in it that something newer has replaced.
    var superseded = SpaceUsage.Row()
    /// Whether a rewrite did not make it smaller: only a drop could.
    var isLeftAlone = false
    /// Bytes that reads of single values have decompressed in it and not returned, as the rest of a
    /// block, since the store was opened.
    var decodedBytes = 0
  }

  /// To decompress a block of 16 KiB for one of its values takes 13 us, of which small blocks save
  /// 9: as much as it takes to rewrite 3 entries, a twentieth of the block.
  private static let decodedPerRawByte = 20

  /// A merge takes the segment before, too, while that is at most so many times as long as what the
  /// merge has. Then each of 42 segments of equal size is written 3 times, and there are 3 on the
  /// average; with a ratio of 2 it is 4 times and 2 segments, with 4 it is 6 and 2.
  static let sizeRatio = 1

  /// By first sequence.
  let rows: [Row]
  /// A merge for the order of keys rewrites at least so many raw bytes.
  let mergeFromBytes: Int
  /// Superseded data is dropped once it is at least so much.
  let dropFromBytes: Int
  /// The same for cached data, which is there to be replaced.
  let purgeFromBytes: Int
  /// Whether every version of everything is kept.
  let keepsAll: Bool

  /// Raw bytes of all entries that something newer has replaced.
  var supersededBytes: Int { rows.reduce(0) { $0 + $1.superseded.superseded } }

  /// 0 where half of all bytes may be superseded data that can go; else as `firstToPurge()`.
  func firstToDrop() -> Int? {
    if !keepsAll, !rows.isEmpty, fits(from: 0) {
      let raw = rows.reduce(0) { $0 + $1.segment.rawBytes }
      let superseded = rows.reduce(0) { $0 + min($1.superseded.superseded, $1.segment.rawBytes) }
      if superseded >= dropFromBytes, superseded >= raw - superseded { return 0 }
    }
    return firstToPurge()
  }

  /// The oldest segment from which on half of the bytes may be cached data that can go. Segments
  /// before it need not take part: a cached version goes whatever older versions its key has.
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

  /// Whether it pays to drop cached data: it is half of the bytes.
  /// - Parameter least: fewer bytes of it do not pay in any case.
  static func paysToPurge(_ cached: Int, of raw: Int, from least: Int) -> Bool {
    cached >= least && 2 * cached >= raw
  }

  /// The segment from which on to merge for the order of keys alone: the first from which on that
  /// is repaid, or an earlier one by `sizeRatio`. Nil where a merge gains too little.
  func firstToMerge() -> Int? {
    // Where the retention keeps everything a merge drops nothing, so that it waits for more bytes.
    let all = rows.reduce(0) { $0 + $1.segment.rawBytes }
    let least = keepsAll ? max(2 * mergeFromBytes, all / 8) : mergeFromBytes
    var found: (first: Int, bytes: Int)?
    var (bytes, repaid) = (0, 0)
    for (first, row) in rows.enumerated().reversed() {
      let more = repaidBytes(row)
      bytes += row.segment.rawBytes
      repaid += more
      if more > 0, repaid >= bytes, bytes >= least { found = (first, bytes) }
    }
    guard var (first, bytes) = found else { return nil }
    while first > 0, rows[first - 1].segment.rawBytes <= Self.sizeRatio * bytes,
      fits(from: first - 1)
    {
      first -= 1
      bytes += rows[first].segment.rawBytes
    }
    return fits(from: first) ? first : nil
  }

  /// How many raw bytes may be rewritten for what a merge saves in a segment: space where it is not
  /// compressed, a segment where it is short, and what reads have lost in it.
  private func repaidBytes(_ row: Row) -> Int {
    guard row.segment.kind == .appended, !row.isLeftAlone else { return 0 }
    let raw = row.segment.rawBytes
    let saves = 2 * row.segment.length > raw || raw < mergeFromBytes
    return max(saves ? raw : 0, row.decodedBytes / Self.decodedPerRawByte)
  }

  /// Raw bytes of the segments that a merge would be repaid for.
  var waitingBytes: Int { rows.reduce(0) { $0 + min($1.segment.rawBytes, repaidBytes($1)) } }

  /// Whether the segments from one on fit into a single new segment.
  private func fits(from first: Int) -> Bool {
    let bytes = rows[first...].reduce(0) { $0 + CompactionPlan.boundedBytes($1.segment) }
    return bytes <= Limits.compactedSegmentBytes
      && CompactionPlan.fits(rows[first].segment.firstSequence, rows.last?.segment.lastSequence)
  }
}
