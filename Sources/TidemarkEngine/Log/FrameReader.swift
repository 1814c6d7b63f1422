/// Reads a segment's frames in file order, heads and values from the same bytes: for who goes
/// through all of it.
struct FrameReader {
  let segment: Segment
  private let window: WindowReader
  private let codecs: FrameCodecs
  /// The frame of the value that was read last, and how far its blocks were passed.
  private var front: DecodedFront?
  private var number = 0
  /// Where block `number` lies in the frame's stream of values, and in the segment.
  private var range = 0..<0
  private var offset = 0
  /// Its raw bytes; empty until they are asked for.
  private var bytes: [UInt8] = []

  /// - Parameter windowBytes: how much is read at a time, at least.
  init(_ segment: Segment, windowBytes: Int = 1 << 20) throws(TidemarkError) {
    self.segment = segment
    let file = try segment.file()
    codecs = try segment.codecs()
    do { window = try WindowReader(file, windowBytes: windowBytes) } catch {
      throw segment.damage(.system(error), offset: 0)
    }
  }

  /// A frame's heads.
  func front(_ record: FrameRecord) throws(TidemarkError) -> DecodedFront {
    let offset = Int(record.offset)
    do throws(LogReadError) {
      let header = try window.header(at: offset, salt: segment.salt)
      let front = try window.front(of: header, at: offset, codecs)
      do throws(FormatError) { try segment.check(front, record) } catch { throw .format(error) }
      return front
    } catch { throw segment.damage(error, offset: offset) }
  }

  /// Appends the value of an entry. Values of a frame are best asked for in their order.
  mutating func appendValue(
    of head: EntryHead, in front: DecodedFront, to values: inout [UInt8]
  ) throws(TidemarkError) {
    if self.front !== front || head.valueOffset < range.lowerBound { rewind(front) }
    let end = head.valueOffset + head.valueLength
    var position = head.valueOffset
    do throws(LogReadError) {
      while position < end {
        try enterBlock(at: position, of: front)
        let count = min(end, range.upperBound) - position
        let start = position - range.lowerBound
        values.append(copying: bytes.rawSpan.extracting(start..<(start + count)))
        position += count
      }
    } catch {
      throw segment.damage(error, offset: offset, sequences: head.sequence...head.sequence)
    }
  }

  /// Decodes the block in which a byte of the values lies.
  private mutating func enterBlock(
    at position: Int, of front: DecodedFront
  ) throws(LogReadError) {
    while !range.contains(position) {
      if !range.isEmpty {
        offset += front.blocks[number].storedLength
        number += 1
      }
      guard number < front.blocks.count else {
        throw .format(FormatError("more values than blocks"))
      }
      range = range.upperBound..<(range.upperBound + front.blocks[number].rawLength)
      bytes = []
    }
    guard bytes.isEmpty else { return }
    let block = front.blocks[number]
    let (offset, codecs, salt) = (offset, codecs, segment.salt)
    bytes = try window.withBytes(at: offset, count: block.storedLength) {
      (stored) throws(FormatError) in
      try codecs.decodeChecked(stored, block: block, salt: salt, at: offset)
    }
  }

  private mutating func rewind(_ front: DecodedFront) {
    self.front = front
    number = 0
    range = 0..<0
    offset = front.offset + FormatConstants.frameHeaderBytes + front.header.frontLength
    bytes = []
  }
}
