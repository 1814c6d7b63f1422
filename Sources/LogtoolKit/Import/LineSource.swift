internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Reads a file of NDJSON, compressed with zstd or not, as chunks of whole lines.
struct LineSource {
  /// A batch of the store is made of one chunk.
  static let linesPerBatch = 1000
  private static let readBytes = 256 << 10
  private static let zstdMagic: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]

  private let input: InputStream
  private let isCancelled: @Sendable () -> Bool
  private var splitter = LineSplitter(linesPerChunk: LineSource.linesPerBatch)
  private var decoder: ZstdStreamDecoder?
  private var buffer: [UInt8] = []
  /// How much of the buffer the decoder has taken.
  private var taken = 0
  private var content: [UInt8] = []
  private var hasBegun = false
  private var isAtEnd = false
  /// Bytes of the file that were read.
  private(set) var bytesRead = 0

  init(_ input: InputStream, isCancelled: @escaping @Sendable () -> Bool) {
    self.input = input
    self.isCancelled = isCancelled
  }

  /// The next chunk; nil at the end.
  /// - Throws: `LineError` for a line that is too long, after which the others follow; `ToolError`
  ///   when the file cannot be read.
  mutating func next() throws -> LineChunk? {
    while true {
      if let chunk = try splitter.next() { return chunk }
      guard !isAtEnd else { return nil }
      try advance()
    }
  }

  /// Gives the splitter the next bytes.
  private mutating func advance() throws {
    if !hasBegun { try begin() }
    guard let decoder else {
      if buffer.isEmpty, try !fill() { return finish() }
      Self.split(buffer, with: &splitter)
      buffer.removeAll(keepingCapacity: true)
      return
    }
    if taken == buffer.count {
      buffer.removeAll(keepingCapacity: true)
      taken = 0
      if try !fill() {
        if !isCancelled() { try checkFormat { () throws(FormatError) in try decoder.finish() } }
        return finish()
      }
    }
    content.removeAll(keepingCapacity: true)
    taken += try checkFormat { () throws(FormatError) in
      try Self.decode(buffer, from: taken, with: decoder, into: &content)
    }
    Self.split(content, with: &splitter)
  }

  private static func split(_ bytes: [UInt8], with splitter: inout LineSplitter) {
    splitter.append(bytes.rawSpan)
  }

  /// - Returns: how many bytes were taken.
  private static func decode(
    _ bytes: [UInt8], from start: Int, with decoder: ZstdStreamDecoder,
    into content: inout [UInt8]
  ) throws(FormatError) -> Int {
    let rest = bytes.rawSpan.extracting(droppingFirst: start)
    return try decoder.decode(rest, appendingTo: &content, atMost: readBytes).consumed
  }

  /// Looks at the first bytes: whether they are of zstd says more than the file's name.
  private mutating func begin() throws(ToolError) {
    hasBegun = true
    while buffer.count < Self.zstdMagic.count {
      guard try fill() else { break }
    }
    if buffer.starts(with: Self.zstdMagic) { decoder = ZstdStreamDecoder() }
  }

  private mutating func fill() throws(ToolError) -> Bool {
    let before = buffer.count
    let more = try input.read(Self.readBytes, into: &buffer, isCancelled: isCancelled)
    bytesRead += buffer.count - before
    return more
  }

  private mutating func finish() {
    isAtEnd = true
    // An interrupted stream may end within a line.
    if !isCancelled() { splitter.finish() }
  }

  private func checkFormat<R>(_ body: () throws(FormatError) -> R) throws(ToolError) -> R {
    do throws(FormatError) { return try body() } catch {
      throw ToolError(
        .damaged,
        "\(input.name) is no good zstd file: \(error.reason); fetch or compress it again")
    }
  }
}
