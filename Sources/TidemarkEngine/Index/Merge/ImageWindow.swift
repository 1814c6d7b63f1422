/// Reads an image (a sorted run of the index) from front to back for a merge, which should not fill
/// the memory with chunks that nobody looks up. Holds those of the last ``load(_:_:_:)`` only.
struct ImageWindow {
  private let image: Image
  /// Whole chunks, from `firstChunk` on.
  private var buffer: [UInt8] = []
  private var firstChunk = 0
  private var chunks = 0

  init(_ image: Image) { self.image = image }

  /// Moves the window to some bytes of a section; going forward reads each chunk once.
  mutating func load(
    _ section: ImageLayout.Section, _ offset: Int, _ count: Int
  ) throws(IndexError) {
    let place = image.header[section]
    guard offset >= 0, count >= 0, offset <= place.bytes, count <= place.bytes - offset else {
      throw image.damage(section)
    }
    guard count > 0 else { return }
    let first = (place.offset + offset) >> ImageLayout.chunkShift
    let last = (place.offset + offset + count - 1) >> ImageLayout.chunkShift
    if first >= firstChunk, last < firstChunk + chunks { return }
    if first < firstChunk || first >= firstChunk + chunks {
      buffer.removeAll(keepingCapacity: true)
      chunks = 0
      firstChunk = first
    } else if first > firstChunk {
      buffer.removeFirst((first - firstChunk) << ImageLayout.chunkShift)
      chunks -= first - firstChunk
      firstChunk = first
    }
    while firstChunk + chunks <= last {
      try append(firstChunk + chunks)
      chunks += 1
    }
  }

  /// The bytes that were loaded last, or a part of them.
  @_lifetime(borrow self)
  func bytes(_ section: ImageLayout.Section, _ offset: Int, _ count: Int) -> RawSpan {
    guard count > 0 else { return RawSpan() }
    let start = image.header[section].offset + offset - firstChunk << ImageLayout.chunkShift
    return buffer.rawSpan.extracting(start..<(start + count))
  }

  private mutating func append(_ chunk: Int) throws(IndexError) {
    let start = buffer.count
    let count = min(
      ImageLayout.chunkBytes, image.header.dataBytes - chunk << ImageLayout.chunkShift)
    buffer.append(contentsOf: repeatElement(0, count: count))
    try buffer.withMutableRawSpan { (bytes) throws(IndexError) in
      var rest = bytes._mutatingExtracting(droppingFirst: start)
      try image.copyChunk(chunk, into: &rest)
    }
  }
}
