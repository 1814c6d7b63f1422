/// Reads a segment's frames in file order, heads and values through one window of the file: for
/// compactions and other walks over whole segments. Keeps nothing in caches.
struct FrameReader {
  let segment: Segment
  private let window: WindowReader
  private let codecs: FrameCodecs
  /// The frame of the value that was read last, and the number of its block that is at hand.
  private var front: DecodedFront?
  private var blockNumber = 0
  /// Where the block lies in the frame's raw values; empty in front of the first block.
  private var blockRange = 0..<0
  /// Where the block stands in the segment's file.
  private var blockOffset = 0
  /// The block's raw bytes; empty until a value in it is asked for.
  private var blockBytes: [UInt8] = []

  /// - Parameter windowBytes: how much is read at a time, at least.
  init(_ segment: Segment, windowBytes: Int = 1 << 20) throws(TidemarkError) {
    self.segment = segment
    let file = try segment.file()
    codecs = try segment.codecs()
    do { window = try WindowReader(file, windowBytes: windowBytes) } catch {
      throw segment.damage(.system(error), offset: 0)
    }
  }

  /// A frame's front: its block table and the heads, which are the entries without their values.
  func front(_ record: FrameRecord) throws(TidemarkError) -> DecodedFront {
    let offset = Int(record.offset)
    do throws(LogReadError) {
      let header = try window.header(at: offset, salt: segment.salt)
      let front = try window.front(of: header, at: offset, codecs)
      do throws(FormatError) { try segment.check(front, record) } catch { throw .format(error) }
      return front
    } catch { throw segment.damage(error, offset: offset) }
  }

  /// Appends the value of an entry. To ask in another order than that of the frame takes time.
  mutating func appendValue(
    of head: EntryHead, in front: DecodedFront, to values: inout [UInt8]
  ) throws(TidemarkError) {
    // Blocks are passed forwards only: an earlier one is looked for from the frame's first on.
    if self.front !== front || head.valueOffset < blockRange.lowerBound { rewind(front) }
    let end = head.valueOffset + head.valueLength
    var position = head.valueOffset
    do throws(LogReadError) {
      while position < end {
        try enterBlock(at: position, of: front)
        let count = min(end, blockRange.upperBound) - position
        let start = position - blockRange.lowerBound
        values.append(copying: blockBytes.rawSpan.extracting(start..<(start + count)))
        position += count
      }
    } catch {
      throw segment.damage(error, offset: blockOffset, sequences: head.sequence...head.sequence)
    }
  }

  /// Goes on to the block in which a byte of the raw values lies, and decodes it.
  private mutating func enterBlock(at position: Int, of front: DecodedFront) throws(LogReadError) {
    while !blockRange.contains(position) {
      if !blockRange.isEmpty {
        blockOffset += front.blocks[blockNumber].storedLength
        blockNumber += 1
      }
      guard blockNumber < front.blocks.count else {
        throw .format(FormatError("more values than blocks"))
      }
      let start = blockRange.upperBound
      blockRange = start..<(start + front.blocks[blockNumber].rawLength)
      blockBytes = []
    }
    guard blockBytes.isEmpty else { return }
    let block = front.blocks[blockNumber]
    let (offset, codecs, salt) = (blockOffset, codecs, segment.salt)
    blockBytes = try window.withBytes(at: offset, count: block.storedLength) {
      (stored) throws(FormatError) in
      try codecs.decodeChecked(stored, block: block, salt: salt, at: offset)
    }
  }

  private mutating func rewind(_ front: DecodedFront) {
    self.front = front
    blockNumber = 0
    blockRange = 0..<0
    blockOffset = front.offset + FormatConstants.frameHeaderBytes + front.header.frontLength
    blockBytes = []
  }
}
