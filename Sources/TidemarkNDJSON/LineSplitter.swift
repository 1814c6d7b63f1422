internal import TidemarkEngine

/// Splits a stream of bytes into chunks of whole lines.
///
/// Lines end with a line feed, or carriage return and line feed; the last may have neither. Each
/// byte is copied once, into the chunk that its line belongs to.
///
/// ```swift
/// splitter.append(buffer)
/// while let chunk = try splitter.next() { … }
/// splitter.finish()
/// while let chunk = try splitter.next() { … }
/// ```
package struct LineSplitter: Sendable {
  /// The longest line, in bytes without its end: the largest value as base64, with room to spare.
  package static var maximumLineBytes: Int { 100 << 20 }

  private enum Item: Sendable {
    case chunk(LineChunk)
    case error(LineError)
  }

  private let linesPerChunk: Int
  private let bytesPerChunk: Int
  private let maximumLineBytes: Int
  /// The items that ``next()`` returns, in order.
  private var ready: [Item] = []
  private var current = LineChunk(firstNumber: 1)
  /// Where in `current` the open line begins.
  private var lineStart = 0
  /// Whether the open line was too long already, and its rest is dropped.
  private var isDropping = false

  /// Creates a splitter.
  /// - Parameters:
  ///   - linesPerChunk: a chunk is full with so many lines that are not empty.
  ///   - bytesPerChunk: a chunk is full, too, with the line that brings it to so many bytes.
  ///   - maximumLineBytes: longer lines are errors.
  package init(
    linesPerChunk: Int = 1000, bytesPerChunk: Int = 8 << 20,
    maximumLineBytes: Int = LineSplitter.maximumLineBytes
  ) {
    self.linesPerChunk = linesPerChunk
    self.bytesPerChunk = bytesPerChunk
    self.maximumLineBytes = maximumLineBytes
  }

  /// The next full chunk; nil when there is none yet.
  /// - Throws: a line that is too long, once, in its place; the lines behind it follow.
  package mutating func next() throws(LineError) -> LineChunk? {
    guard !ready.isEmpty else { return nil }
    switch ready.removeFirst() {
    case .chunk(let chunk): return chunk
    case .error(let error): throw error
    }
  }

  /// Takes the next bytes of the stream.
  package mutating func append(_ bytes: RawSpan) {
    var copied = 0
    var from = 0
    while let feed = Self.lineFeed(in: bytes, from: from) {
      from = feed + 1
      let end = current.bytes.count + feed - copied
      let last = feed > copied ? bytes.byte(feed - 1) : current.bytes.last
      let length = Self.length(end - lineStart, last)
      if isDropping || length > maximumLineBytes {
        copyLines(bytes, from: copied)
        endLongLine()
        copied = from
        continue
      }
      current.lineEnds.append(end)
      current.lineCount += length > 0 ? 1 : 0
      lineStart = end + 1
      if current.lineCount >= linesPerChunk || lineStart >= bytesPerChunk {
        current.bytes.append(copying: bytes.extracting(copied..<from))
        copied = from
        startChunk()
      }
    }
    guard !isDropping else { return }
    let rest = bytes.extracting(copied..<bytes.byteCount)
    if current.bytes.count - lineStart + rest.byteCount > maximumLineBytes + 1 {
      copyLines(bytes, from: copied)
      dropLongLine()
    } else {
      current.bytes.append(copying: rest)
    }
  }

  /// Ends the stream: the last line may lack its end.
  package mutating func finish() {
    let length = Self.length(current.bytes.count - lineStart, current.bytes.last)
    if isDropping || length > maximumLineBytes {
      endLongLine()
    } else if length > 0 {
      current.lineEnds.append(current.bytes.count)
      current.lineCount += 1
    }
    startChunk()
  }

  /// Copies what is missing of the lines before the open one.
  private mutating func copyLines(_ bytes: RawSpan, from copied: Int) {
    let missing = max(0, lineStart - current.bytes.count)
    current.bytes.append(copying: bytes.extracting(copied..<copied + missing))
  }

  /// Puts the chunk out and starts the next one.
  private mutating func startChunk() {
    guard !current.lineEnds.isEmpty else { return }
    var next = LineChunk(firstNumber: current.firstNumber + current.lineEnds.count)
    next.bytes.reserveCapacity(min(current.bytes.count / 8 * 9, bytesPerChunk))
    next.lineEnds.reserveCapacity(current.lineEnds.count)
    if current.lineCount > 0 { ready.append(.chunk(current)) }
    current = next
    lineStart = 0
  }

  /// The open line is too long: puts out the lines before it, then the error, and forgets it.
  private mutating func dropLongLine() {
    current.bytes.removeLast(current.bytes.count - lineStart)
    startChunk()
    ready.append(
      .error(
        LineError(
          .outOfBounds, line: current.firstNumber, column: 0,
          "the line is longer than \(maximumLineBytes >> 20) MiB; "
            + "is the file NDJSON, one entry a line?")))
    isDropping = true
  }

  /// The end of a line that is too long has come.
  private mutating func endLongLine() {
    if !isDropping { dropLongLine() }
    isDropping = false
    current.firstNumber += 1
  }

  /// The length of a line without a carriage return at its end.
  private static func length(_ count: Int, _ last: UInt8?) -> Int {
    count > 0 && last == UInt8(ascii: "\r") ? count - 1 : count
  }

  /// The offset of the next line feed.
  private static func lineFeed(in bytes: RawSpan, from start: Int) -> Int? {
    let count = bytes.byteCount
    var offset = start
    while offset <= count &- 32 {
      // Four words with one branch: most lines are long.
      let first = WordScan.lineFeeds(bytes.word(offset))
      let second = WordScan.lineFeeds(bytes.word(offset &+ 8))
      let third = WordScan.lineFeeds(bytes.word(offset &+ 16))
      let fourth = WordScan.lineFeeds(bytes.word(offset &+ 24))
      if first | second | third | fourth != 0 { break }
      offset &+= 32
    }
    while offset <= count &- 8 {
      let marks = WordScan.lineFeeds(bytes.word(offset))
      if marks != 0 { return offset &+ WordScan.bytesBefore(marks) }
      offset &+= 8
    }
    while offset < count {
      if bytes.byte(offset) == 0x0a { return offset }
      offset &+= 1
    }
    return nil
  }
}
