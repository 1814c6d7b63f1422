/// Reads a sorted run from front to back for a merge, which should not fill
/// the memory with chunks that nobody looks up. Holds those of the last ``load(_:_:_:)`` only.
struct RunWindow {
  private let run: SortedRun
  /// Whole chunks, from `firstChunk` on.
  private var buffer: [UInt8] = []
  private var firstChunk = 0
  private var chunks = 0

  init(_ run: SortedRun) { self.run = run }

  /// Moves the window to some bytes of a section; going forward reads each chunk once.
  mutating func load(
    _ section: RunLayout.Section, _ offset: Int, _ count: Int
  ) throws(IndexError) {
    let place = run.header[section]
    guard offset >= 0, count >= 0, offset <= place.bytes, count <= place.bytes - offset else {
      throw run.damage(section)
    }
    guard count > 0 else { return }
    let first = (place.offset + offset) >> RunLayout.chunkShift
    let last = (place.offset + offset + count - 1) >> RunLayout.chunkShift
    if first >= firstChunk, last < firstChunk + chunks { return }
    if first < firstChunk || first >= firstChunk + chunks {
      buffer.removeAll(keepingCapacity: true)
      chunks = 0
      firstChunk = first
    } else if first > firstChunk {
      buffer.removeFirst((first - firstChunk) << RunLayout.chunkShift)
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
  func bytes(_ section: RunLayout.Section, _ offset: Int, _ count: Int) -> RawSpan {
    guard count > 0 else { return RawSpan() }
    let start = run.header[section].offset + offset - firstChunk << RunLayout.chunkShift
    return buffer.rawSpan.extracting(start..<(start + count))
  }

  private mutating func append(_ chunk: Int) throws(IndexError) {
    let start = buffer.count
    let count = min(
      RunLayout.chunkBytes, run.header.dataBytes - chunk << RunLayout.chunkShift)
    buffer.append(contentsOf: repeatElement(0, count: count))
    try buffer.withMutableRawSpan { (bytes) throws(IndexError) in
      var rest = bytes._mutatingExtracting(droppingFirst: start)
      try run.copyChunk(chunk, into: &rest)
    }
  }
}
