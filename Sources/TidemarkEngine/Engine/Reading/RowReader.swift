// SAFETY: a value lies in a block that the reader keeps, and changes only in calls that mutate it.

/// Reads the values of a series of entries ("rows" of a scan) in the caller's order, 4 to 32 ahead.
/// A value lies in a block, which is decoded as a whole; the segment's locator says in which one.
///
/// The caller prepares rows and then reads them: `prepare` finds the places of several, then their
/// blocks, and prefetches their bytes, so that waits for memory overlap.
package struct RowReader {
  /// How many segments a scan by key is likely to go back and forth between.
  private static let heldMost = 16
  private static let firstAhead = 4
  private static let mostAhead = 32
  /// No more rows are prepared together once their blocks have so many bytes.
  private static let aheadBytes = 1 << 20
  private static let noBlock = -2

  /// A segment in which rows were found, with where the last one was: the next is likely near by.
  private final class RowSegment {
    let segment: Segment
    var range: ClosedRange<UInt64>
    /// A sealed segment's locator, read without a lock; nil for the active segment.
    let locator: SealedLocator?
    /// The sequence of each slot (an entry's number by key) of a compacted segment, if listed.
    var sequences: SlotSequences?
    /// The slot that was found last.
    var slot = -1
    /// How many searches have ended at a neighbour of the last slot, where `sequences` is none.
    var searches = 0
    /// The index in `blocks` of the block that was used last; -1 for none.
    var block = -1
    /// That block's row in the locator, and its range in the segment's stream of raw values.
    var row = -1
    var values: Range<UInt64> = 0..<0

    init(_ segment: Segment, _ range: ClosedRange<UInt64>, _ locator: SealedLocator?) {
      self.segment = segment
      self.range = range
      self.locator = locator
    }
  }

  private struct Block {
    let segment: Segment
    let record: BlockRecord
    /// Empty before the block is read, and if that fails: then its rows are read alone.
    var bytes: [UInt8] = []
  }

  private struct Row {
    var sequence: UInt64
    /// Index in `blocks`; `noBlock` for an empty value, -1 for a row that is read alone.
    var block = -1
    var start = 0
    var count = 0
  }

  /// Where a value lies among the blocks that are at hand.
  struct Place {
    fileprivate var block: Int
    fileprivate var range: Range<Int>
  }

  private let reader: Reader
  /// `reader.reopenCount` when everything here was found: after another one sequences may name
  /// others.
  private var reopenCount: UInt64 = 0
  private var recent: [RowSegment] = []
  /// The prepared rows, and the index of the next one to read.
  private var rows: [Row] = []
  private var next = 0
  private var blocks: [Block] = []
  private var ahead = Self.firstAhead
  /// Bytes of decoded blocks, but for compacted segments, which are in the order of keys already.
  private(set) var decodedBytes = 0
  /// The appended segment from which a block was decoded last: it is charged with the bytes that
  /// were decoded in vain. Rows that are prepared together seldom come from several.
  private var decoded: Segment?
  /// Bytes of the values that lie in blocks.
  private(set) var wantedBytes = 0

  package init(_ reader: Reader) { self.reader = reader }

  /// Where the value of the next prepared row lies.
  /// - Returns: nil if ``Reader/read(of:isTouch:_:)`` has to read it, or if it is another row.
  /// - Throws: `closed`, `suspended`.
  mutating func next(_ sequence: UInt64) throws(TidemarkError) -> Place? {
    guard next < rows.count, rows[next].sequence == sequence else { return nil }
    let row = rows[next]
    next += 1
    guard
      row.block == Self.noBlock
        || row.block >= 0 && row.start <= blocks[row.block].bytes.count - row.count
    else { return nil }
    // The block is a copy, which must not be served once the store is closed or suspended.
    try reader.checkReadable()
    guard reader.reopenCount.value == reopenCount else { return nil }
    return Place(block: row.block, range: row.start..<(row.start + row.count))
  }

  /// The bytes at a place; good until the next `prepare`.
  @_lifetime(borrow self)
  func value(at place: Place) -> RawSpan {
    if place.block == Self.noBlock { return RawSpan() }
    // Through a span, since an access through the array retains the block for each row.
    let blocks = blocks.span
    let bytes = blocks[place.block].bytes.rawSpan.extracting(place.range)
    return unsafe _overrideLifetime(bytes, borrowing: self)
  }

  /// Calls `body` with the value of an entry.
  /// - Parameter isTouch: whether it is a touch, whose value lies at an older put.
  /// - Throws: what ``Reader/read(of:isTouch:_:)`` throws.
  package mutating func read(
    _ sequence: UInt64, isTouch: Bool, _ body: (RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    if let place = try next(sequence) { return try body(value(at: place)) }
    try reader.read(of: sequence, isTouch: isTouch) { (value, _) throws(TidemarkError) in
      try body(value)
    }
  }

  /// The value of a single put: fast if it lies near one that was read before.
  /// - Throws: what ``Reader/read(of:isTouch:_:)`` throws.
  package mutating func value(of sequence: UInt64) throws(TidemarkError) -> [UInt8] {
    _ = prepare(1) { _ in (sequence, false) }
    var bytes: [UInt8] = []
    try read(sequence, isTouch: false) { bytes = [UInt8](copying: $0) }
    return bytes
  }

  /// Finds and decodes the blocks of rows that are about to be read, in this order.
  /// - Parameters:
  ///   - most: how many rows there are; at least one.
  ///   - row: the sequence of the n-th, and whether it is a touch (its value is in another entry).
  /// - Returns: how many rows were prepared: at least one.
  package mutating func prepare(
    _ most: Int, _ row: (Int) -> (sequence: UInt64, isTouch: Bool)
  ) -> Int {
    next = 0
    rows.removeAll(keepingCapacity: true)
    let now = reader.reopenCount.value
    // The files of a former opening are closed, and other processes may have written since.
    if now != reopenCount { (reopenCount, recent, blocks) = (now, [], []) }
    keepLastBlocks()
    let kept = blocks.count
    let before = decodedBytes - wantedBytes
    placeRows(min(most, ahead), row)
    ahead = min(2 * ahead, Self.mostAhead)
    loadBlocks(from: kept)
    for row in rows where row.block >= 0 { wantedBytes += row.count }
    let unwanted = decodedBytes - wantedBytes - before
    if unwanted > 0 { decoded?.decodedBytes.raise(by: UInt64(unwanted)) }
    let all = blocks.span
    for row in rows where row.block >= 0 {
      let bytes = all[row.block].bytes.rawSpan
      guard row.start <= bytes.byteCount - row.count else { continue }
      bytes.extracting(row.start..<(row.start + row.count)).prefetch()
    }
    for segment in recent where segment.searches > 0 { noteSearches(in: segment) }
    return rows.count
  }

  /// Forgets all blocks but the last one of each segment, which may hold the next rows, too.
  private mutating func keepLastBlocks() {
    var kept: [Block] = []
    for segment in recent where segment.block >= 0 {
      kept.append(blocks[segment.block])
      segment.block = kept.count - 1
    }
    blocks = kept
  }

  /// Reads the blocks from an index on, from the caches or the file.
  private mutating func loadBlocks(from first: Int) {
    guard first < blocks.count else { return }
    var addresses: [BlockAddress] = []
    addresses.reserveCapacity(blocks.count - first)
    for block in blocks[first...] {
      addresses.append(reader.caches.address(of: block.record, in: block.segment))
    }
    var found: [[UInt8]?] = []
    reader.caches.blocks.values(for: addresses, into: &found)
    for number in first..<blocks.count {
      let record = blocks[number].record
      // In a damaged locator two records may name one place with different lengths.
      if let bytes = found[number - first], bytes.count == Int(record.rawLength) {
        blocks[number].bytes = bytes
      } else {
        // On an error its rows are read alone, which finds a segment that has replaced this one.
        let bytes = try? blocks[number].segment.block(
          record, sequence: 0, caches: reader.caches, isForRows: true)
        blocks[number].bytes = bytes ?? []
        guard blocks[number].segment.kind != .compacted else { continue }
        decodedBytes += blocks[number].bytes.count
        decoded = blocks[number].segment
      }
    }
  }

  /// The order in which to read rows so that each block is decoded once: rows in compacted segments
  /// first, in the order of keys as they come, then the others in the order of the log.
  /// - Returns: indices of rows.
  mutating func readingOrder(_ rows: [(sequence: UInt64, isTouch: Bool)]) -> [Int] {
    var compacted: [Int] = []
    var appended: [Int] = []
    for (index, row) in rows.enumerated() {
      if segment(covering: row.sequence)?.segment.kind == .compacted {
        compacted.append(index)
      } else {
        appended.append(index)
      }
    }
    appended.sort { rows[$0].sequence < rows[$1].sequence }
    return compacted + appended
  }

  // MARK: Finding

  /// The segment that covers a sequence; nil when none does.
  private mutating func segment(covering sequence: UInt64) -> RowSegment? {
    if let known = recent.first(where: { $0.range.contains(sequence) }) { return known }
    guard case .segment(let segment) = try? reader.place(of: sequence) else { return nil }
    let range = segment.range
    guard range.contains(sequence) else { return nil }
    // The active segment covers more by now than when it was added.
    if let known = recent.first(where: { $0.segment === segment }) {
      known.range = range
      return known
    }
    let locator = segment.isSealed ? (try? segment.sealedLocator()) ?? nil : nil
    let new = RowSegment(segment, range, locator)
    if let locator, locator.footer.sequenceCount > 0 {
      new.sequences = reader.caches.sequences.value(
        for: reader.caches.address(of: .none, in: segment))
    }
    if recent.count == Self.heldMost { recent.removeFirst() }
    recent.append(new)
    return new
  }

  /// Finds where the values of the next rows lie.
  private mutating func placeRows(_ count: Int, _ row: (Int) -> (sequence: UInt64, isTouch: Bool)) {
    var bytes = 0
    while rows.count < count, bytes < Self.aheadBytes {
      let (sequence, isTouch) = row(rows.count)
      guard !isTouch, let here = segment(covering: sequence) else {
        rows.append(Row(sequence: sequence))
        continue
      }
      let (locator, sequences) = (here.locator, here.sequences)
      // Loaded once for all rows in the segment, since each load of a reference counts it.
      while rows.count < count, bytes < Self.aheadBytes {
        let (sequence, isTouch) = row(rows.count)
        guard here.range.contains(sequence) else { break }
        let known = blocks.count
        var found: Row?
        if !isTouch {
          if let locator {
            found = place(of: sequence, in: here, locator, sequences)
          } else {
            found = placeAppended(sequence, in: here)
          }
        }
        rows.append(found ?? Row(sequence: sequence))
        if blocks.count > known { bytes += Int(blocks[known].record.rawLength) }
      }
    }
  }

  /// Finds the block of a value in a sealed segment.
  /// - Returns: nil for a row that is better read alone, and on an error: a compaction may have
  ///   replaced the segment, and the reader then finds the new one.
  private mutating func place(
    of sequence: UInt64, in held: RowSegment, _ locator: SealedLocator, _ sequences: SlotSequences?
  ) -> Row? {
    guard let slot = Self.slot(of: sequence, in: held, locator, sequences),
      let value = try? locator.valueRange(ofSlot: slot)
    else { return nil }
    if value.isEmpty { return Row(sequence: sequence, block: Self.noBlock) }
    if held.block < 0 || !held.values.contains(value.lowerBound) {
      // A value of several blocks is read alone, which reads them all.
      guard let found = try? locator.block(holding: value.lowerBound, near: held.row + 1),
        value.upperBound <= found.range.upperBound
      else { return nil }
      held.block = blocks.count
      held.row = found.row
      held.values = found.range
      blocks.append(Block(segment: held.segment, record: found.record))
    }
    guard value.upperBound <= held.values.upperBound else { return nil }
    return Row(
      sequence: sequence, block: held.block,
      start: Int(value.lowerBound - held.values.lowerBound), count: value.count)
  }

  /// The same for the segment that is appended to.
  private mutating func placeAppended(_ sequence: UInt64, in held: RowSegment) -> Row? {
    guard let location = (try? held.segment.locate(sequence)) ?? nil, location.more.isEmpty
    else { return nil }
    if location.length == 0 { return Row(sequence: sequence, block: Self.noBlock) }
    if held.block < 0 || blocks[held.block].record != location.first {
      held.block = blocks.count
      blocks.append(Block(segment: held.segment, record: location.first))
    }
    return Row(
      sequence: sequence, block: held.block, start: location.position, count: location.length)
  }

  /// The slot of an entry: next to the last one, as `sequences` tells, or else searched for.
  private static func slot(
    of sequence: UInt64, in held: RowSegment, _ locator: SealedLocator, _ sequences: SlotSequences?
  ) -> Int? {
    let last = held.slot
    if let sequences {
      let slot = sequences.holds(sequence, at: last + 1) ? last + 1 : last - 1
      if sequences.holds(sequence, at: slot) {
        held.slot = slot
        return slot
      }
    }
    guard let slot = (try? locator.slot(of: sequence)) ?? nil else { return nil }
    if slot == last + 1 || slot == last - 1 { held.searches += 1 }
    held.slot = slot
    return slot
  }

  /// Lists the sequences of all slots, once searches have cost as much as the list does.
  private func noteSearches(in held: RowSegment) {
    let searches = held.searches
    held.searches = 0
    guard let locator = held.locator, locator.footer.sequenceCount > 0,
      locator.noteSearches(searches)
    else { return }
    let address = reader.caches.address(of: .none, in: held.segment)
    let bytes = SlotSequences.memoryBytes(slots: locator.footer.slotCount)
    // Another reader may have made the list meanwhile.
    if let known = reader.caches.sequences.value(for: address) {
      held.sequences = known
    } else if reader.caches.hasRoom(forSequences: bytes),
      let all = try? SlotSequences(locator), reader.caches.keep(all, for: address, bytes: bytes)
    {
      held.sequences = all
    }
  }
}
