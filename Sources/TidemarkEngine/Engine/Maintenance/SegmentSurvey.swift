/// A walk over a segment's file, in whatever state it is: which frames (blocks of entries) stand
/// there, and which stretches are damaged. Verify and repair agree on damage by using it.
///
/// A frame that is whole by itself is not judged: the verifier compares it with MANIFEST and the
/// locator (the table of entries behind the frames), and a repair takes every readable entry.
/// Sequences of an appended segment are dense, without gaps; a compacted one is sorted by key.
struct SegmentSurvey {
  enum Piece {
    /// A frame whose heads (entry headers) are intact, and the sequence that was expected next.
    case frame(DecodedFront, expected: UInt64)
    case damage(Damage)
  }

  /// A stretch in which no whole frame stands.
  struct Damage {
    var range: Range<Int>
    var reason: FormatError
    /// The entries that stood there; nil where nothing tells, or there were none.
    var sequences: ClosedRange<UInt64>?
  }

  let origin: SegmentOrigin
  private let file: TolerantFile
  private let window: WindowReader
  private let joinsDamage: Bool
  private var scan: FrameWalker
  /// The frame behind a damaged stretch that was just returned; `next` returns it.
  private var front: DecodedFront?
  /// Damage that was met and not returned yet: only the next frame tells which entries it held.
  var open: FrameWalker.Damage?
  /// Whether the walk met damage, or its caller found a frame that does not belong there.
  var hasDamage = false
  /// The number of entries in the frames that the walk has passed.
  private(set) var entryCount = 0
  /// Sequence expected next, where sequences are dense.
  private(set) var expected: UInt64

  /// - Parameter joinsDamage: whether damaged stretches that follow each other are one piece.
  init(
    _ file: TolerantFile, _ origin: SegmentOrigin, joinsDamage: Bool = false
  ) throws(FileSystemError) {
    self.file = file
    self.joinsDamage = joinsDamage
    self.origin = origin
    window = try WindowReader(file)
    scan = FrameWalker(
      window, salt: origin.salt, codecs: origin.codecs, from: origin.firstFrame,
      end: origin.framesEnd)
    expected = origin.firstSequence
  }

  func close() { file.close() }

  /// Where the walk stands.
  var offset: Int { scan.offset }
  /// Chained checksum of the headers so far; of use only while nothing was damaged.
  var chain: UInt64 { scan.chain }

  /// The next piece; nil at the end, where a last damaged stretch is left in `open`.
  mutating func next() throws(FileSystemError) -> Piece? {
    if let front { return pass(front) }
    while !isComplete, let piece = try scan.nextPiece() {
      switch piece {
      case .frame(let front):
        guard let damage = settle(next: front.header.firstSequence) else { return pass(front) }
        self.front = front
        return .damage(damage)
      case .damage(let damage):
        hasDamage = true
        if joinsDamage, damage.header == nil, let start = open?.range.lowerBound {
          // The stretch goes on, and only a header tells which entries were in its beginning.
          open?.range = start..<damage.range.upperBound
          continue
        }
        let settled = settle(next: damage.header?.firstSequence)
        open = damage
        if let settled { return .damage(settled) }
      }
    }
    return nil
  }

  /// Whether all frames of MANIFEST's row were met, by the chained checksum of their headers: where
  /// the footer is lost nothing else tells where they end, and a locator begins that is no damage.
  private var isComplete: Bool {
    guard origin.footer == nil, let row = origin.row, row.state == .sealed else { return false }
    return !hasDamage && entryCount == row.entryCount && scan.chain == row.chain
  }

  /// Counts a frame whose turn has come.
  private mutating func pass(_ front: DecodedFront) -> Piece {
    self.front = nil
    entryCount += front.header.entryCount
    let piece = Piece.frame(front, expected: expected)
    if origin.kind == .appended, front.header.entryCount > 0 {
      expected = max(expected, front.header.nextSequence)
    }
    return piece
  }

  /// Takes the stretch out of `open`. All dense sequences before the next one were lost in it.
  /// - Parameter next: nil behind the last frame, where the segment's coverage tells.
  mutating func settle(next: UInt64?) -> Damage? {
    guard let damage = open else { return nil }
    open = nil
    var settled = Damage(range: damage.range, reason: damage.reason)
    let end = next ?? origin.coverage.map { $0.upperBound + 1 } ?? expected
    if origin.kind == .appended, end > expected {
      settled.sequences = expected...(end - 1)
      expected = end
    }
    return settled
  }

  /// Reads a frame again whose offset an earlier walk has found.
  /// - Returns: nil when it is not there any more.
  func front(at offset: Int) throws(FileSystemError) -> DecodedFront? {
    var walker = FrameWalker(window, salt: origin.salt, codecs: origin.codecs, from: offset)
    guard case .frame(let front) = try walker.next() else { return nil }
    return front
  }

  /// Reads and decodes a frame's values as far as they are intact.
  /// - Parameter keepsBytes: false when they are only to be checked.
  func values(
    of front: DecodedFront, keepsBytes: Bool = false
  ) throws(FileSystemError) -> FrameValues {
    let codecs = origin.codecs
    var values = FrameValues()
    do { _ = try front.places() } catch { values.problem = front.isOpaque ? nil : error }
    var position = front.offset + FormatConstants.frameHeaderBytes + front.header.frontLength
    for block in front.blocks {
      let range = values.length..<(values.length + block.rawLength)
      do throws(LogReadError) {
        let raw = try window.withBytes(at: position, count: block.storedLength) {
          (bytes) throws(FormatError) -> [UInt8] in
          let bytes = try block.checked(bytes, salt: origin.salt, at: position)
          guard !codecs.isOpaque, keepsBytes || block.codec != .raw || codecs.tagBytes > 0
          else { return [] }
          return try codecs.decode(bytes, block: block, at: position)
        }
        if keepsBytes { values.bytes.append(contentsOf: raw) }
      } catch {
        let reason = try error.reason()
        if keepsBytes { values.bytes.append(contentsOf: repeatElement(0, count: range.count)) }
        values.bad.append(
          FrameValues.BadBlock(
            range: range, offset: position, storedLength: block.storedLength, reason: reason))
      }
      values.length = range.upperBound
      position += block.storedLength
    }
    values.isPadded = try isZero(from: position, to: front.offset + front.header.totalLength)
    return values
  }

  func isZero(from start: Int, to end: Int) throws(FileSystemError) -> Bool {
    try FrameWalker(window, salt: origin.salt, codecs: origin.codecs, from: start, end: end)
      .isZero(from: start)
  }

  /// The first page so far that overlaps a range and that the disk could not read.
  func unreadablePage(in range: Range<Int>) -> Int? {
    file.unreadablePages.first {
      $0 < range.upperBound && $0 + TolerantFile.pageBytes > range.lowerBound
    }
  }

  /// The sequences that a sorted segment's locator lists; nil when it is damaged.
  /// - Parameter stretch: where their frames begin; nil for all.
  func sequencesHeld(inFramesAt stretch: Range<Int>? = nil) -> [UInt64]? {
    guard let footer = origin.footer else { return nil }
    do throws(LogReadError) {
      let locator = try SealedLocator(
        file: file, footer: footer, length: origin.sealedLength, codecs: origin.codecs)
      var slots: [Range<Int>] = [0..<footer.slotCount]
      if let stretch {
        slots = []
        for index in 0..<footer.frameCount {
          let frame = try locator.frame(index)
          guard stretch.contains(Int(frame.offset)) else { continue }
          slots.append(Int(frame.firstSlot)..<(Int(frame.firstSlot) + Int(frame.entryCount)))
        }
      }
      guard let first = slots.first?.lowerBound, let end = slots.last?.upperBound else { return [] }
      var sequences: [UInt64] = []
      for index in 0..<footer.sequenceCount {
        let (sequence, slot) = try locator.sequence(index)
        if slot >= first, slot < end { sequences.append(sequence) }
      }
      return sequences
    } catch { return nil }
  }
}

/// The values of a frame, one behind the other, and which of its blocks are damaged.
struct FrameValues {
  struct BadBlock {
    /// The block's share of the values.
    var range: Range<Int>
    var offset: Int
    var storedLength = 0
    var reason: FormatError

    /// Whether some of an entry's value lies in it.
    func holds(_ entry: EntryHead) -> Bool {
      entry.valueLength > 0 && range.lowerBound < entry.valueOffset + entry.valueLength
        && range.upperBound > entry.valueOffset
    }
  }

  /// Zeros stand in the place of damaged blocks; empty where the bytes are not kept.
  var bytes: [UInt8] = []
  var length = 0
  var bad: [BadBlock] = []
  /// Why values cannot be told apart; nil when they can.
  var problem: FormatError?
  /// Whether only zeros stand behind the last block, up to the end of the frame.
  var isPadded = true

  /// The first damaged block that an entry's value needs.
  func firstBadBlock(of entry: EntryHead, in front: DecodedFront) -> BadBlock? {
    do throws(FormatError) {
      _ = try front.attributes(of: entry)
      guard entry.valueLength > 0 else { return nil }
      if let problem { throw problem }
      guard entry.valueOffset + entry.valueLength <= length else {
        throw FormatError("more values than blocks")
      }
    } catch { return BadBlock(range: 0..<0, offset: front.offset, reason: error) }
    return bad.first { $0.holds(entry) }
  }
}
