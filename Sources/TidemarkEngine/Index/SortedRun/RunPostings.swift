/// A posting list of a sorted run: the ordinals, ascending, of keys with a
/// label, in blocks of 128. A skip tells a block's first ordinal and place. See ``RunLayout``.
struct RunPostings {
  let run: SortedRun
  /// Where the list stands in the section of postings.
  let offset: Int
  /// The length of the list.
  let bytes: Int
  /// How many ordinals there are.
  let count: Int

  /// The list that an entry at `place` in the section of labels describes.
  init(_ run: SortedRun, entry: RawSpan, at place: Int) throws(IndexError) {
    self.run = run
    let total = run.header[.postings].bytes
    do throws(FormatError) {
      let start = try entry.u64(at: 0)
      count = Int(try entry.u32(at: 8))
      bytes = Int(try entry.u32(at: 12))
      guard start <= UInt64(total), bytes <= total - Int(start), count <= run.count,
        bytes >= Self.leastBytes(count)
      else { throw FormatError("list out of bounds") }
      offset = Int(start)
    } catch { throw run.damage(.labels, place) }
  }

  /// How many blocks hold this many ordinals.
  static func blocks(_ count: Int) -> Int {
    (count + RunLayout.ordinalsPerPosting - 1) / RunLayout.ordinalsPerPosting
  }

  /// The least length of a list: a block has a skip, and a byte for each ordinal but the first. So
  /// the length of the file bounds the memory that is set aside for ordinals.
  private static func leastBytes(_ count: Int) -> Int {
    count + blocks(count) * (RunLayout.skipBytes - 1)
  }

  var blockCount: Int { Self.blocks(count) }

  /// Replaces `ordinals` by those of a block.
  func decode(_ block: Int, into ordinals: inout [UInt32]) throws(IndexError) {
    ordinals.removeAll(keepingCapacity: true)
    let skip = try skip(block)
    let end = block + 1 < blockCount ? try self.skip(block + 1).offset : bytes
    let wanted = min(RunLayout.ordinalsPerPosting, count - block * RunLayout.ordinalsPerPosting)
    // A difference takes at most five bytes.
    guard skip.offset <= end, end - skip.offset <= 5 * RunLayout.ordinalsPerPosting else {
      throw run.damage(.postings, offset)
    }
    let coded = try run.bytes(.postings, offset + skip.offset, end - skip.offset)
    do throws(FormatError) {
      var reader = ByteReader(coded)
      var ordinal = skip.ordinal
      ordinals.append(UInt32(truncatingIfNeeded: ordinal))
      for _ in 1..<max(wanted, 1) {
        ordinal = try nextOrdinal(&reader, ordinal)
        ordinals.append(UInt32(truncatingIfNeeded: ordinal))
      }
      guard reader.remaining == 0 else { throw FormatError("block too long") }
    } catch { throw run.damage(.postings, offset + skip.offset) }
  }

  /// Calls `body` with all ordinals of the list, whose bytes the caller has read.
  func forEach(in list: RawSpan, _ body: (UInt32) -> Void) throws(IndexError) {
    do throws(FormatError) {
      var reader = ByteReader(list)
      _ = try reader.skip(blockCount * RunLayout.skipBytes)
      var ordinal = 0
      for i in 0..<count {
        if i % RunLayout.ordinalsPerPosting == 0 {
          let block = i / RunLayout.ordinalsPerPosting
          ordinal = Int(try list.u32(at: block * RunLayout.skipBytes))
          guard ordinal < run.count else { throw FormatError("ordinal out of bounds") }
        } else {
          ordinal = try nextOrdinal(&reader, ordinal)
        }
        body(UInt32(truncatingIfNeeded: ordinal))
      }
    } catch { throw run.damage(.postings, offset) }
  }

  @inline(__always)
  private func nextOrdinal(_ reader: inout ByteReader, _ ordinal: Int) throws(FormatError) -> Int {
    let step = try reader.varint(atMost: run.count)
    guard step > 0, ordinal + step < run.count else { throw FormatError("ordinal out of bounds") }
    return ordinal + step
  }

  /// The skip of a block: its first ordinal, and where in the list the others stand.
  fileprivate func skip(_ block: Int) throws(IndexError) -> (ordinal: Int, offset: Int) {
    let place = offset + block * RunLayout.skipBytes
    let entry = try run.bytes(.postings, place, RunLayout.skipBytes)
    guard let ordinal = try? entry.u32(at: 0), let start = try? entry.u32(at: 4),
      ordinal < run.count, start >= blockCount * RunLayout.skipBytes, start <= bytes
    else { throw run.damage(.postings, place) }
    return (Int(ordinal), Int(start))
  }
}

/// Walks the ordinals of a posting list that lie in a range, in either direction.
struct PostingCursor {
  private let list: RunPostings
  private let range: Range<Int>
  private let descending: Bool
  private var block = 0
  private var ordinals: [UInt32] = []
  private var position = 0
  /// The ordinal that the cursor stands at; nil at the end.
  private(set) var ordinal: Int?

  init(_ list: RunPostings, _ range: Range<Int>, descending: Bool) throws(IndexError) {
    self.list = list
    self.range = range
    self.descending = descending
    guard list.count > 0, !range.isEmpty else { return }
    // The walk begins in the last block whose first ordinal is below `start`.
    let start = descending ? range.upperBound : range.lowerBound
    let end = try (0..<list.blockCount).partitioningIndex { (number) throws(IndexError) in
      try list.skip(number).ordinal >= start
    }
    block = max(0, end - 1)
    try list.decode(block, into: &ordinals)
    let before = ordinals.count { $0 < start }
    // May lie outside of the block: then the walk begins in the next one.
    position = descending ? before - 1 : before
    try enterBlock()
  }

  @inline(__always)
  mutating func advance() throws(IndexError) {
    position += descending ? -1 : 1
    if position >= 0, position < ordinals.count {
      let next = Int(ordinals[position])
      ordinal = range.contains(next) ? next : nil
    } else {
      try enterBlock()
    }
  }

  /// The ordinal `count` steps ahead; nil if it is not in the present block.
  @inline(__always)
  func ordinal(after count: Int) -> Int? {
    let place = position + (descending ? -count : count)
    return ordinals.indices.contains(place) ? Int(ordinals[place]) : nil
  }

  /// Goes to the next block of the walk if `position` lies outside of the present one, and takes
  /// the ordinal at `position`.
  private mutating func enterBlock() throws(IndexError) {
    ordinal = nil
    if !ordinals.indices.contains(position) {
      let next = descending ? block - 1 : block + 1
      guard next >= 0, next < list.blockCount else { return }
      block = next
      try list.decode(block, into: &ordinals)
      position = descending ? ordinals.count - 1 : 0
    }
    let next = Int(ordinals[position])
    if range.contains(next) { ordinal = next }
  }
}
