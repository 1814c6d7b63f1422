internal import TidemarkEngine
internal import TidemarkNDJSON

/// A file of lines on the machine's own disk, compressed with zstd or not.
struct LineFile {
  private static let readBytes = 256 << 10
  private static let zstdMagic: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]

  private let path: String
  private let file: any File
  private var offset = 0
  private var splitter = LineSplitter()
  private var decoder: ZstdStreamDecoder?
  /// Bytes of the file that the decoder has not taken yet.
  private var input: [UInt8] = []
  private var isAtEnd = false

  /// - Throws: what opening the file throws.
  init(_ path: String) throws(TidemarkError) {
    self.path = path
    do throws(FileSystemError) { file = try LocalFileSystem().open(path, .read) } catch {
      throw TidemarkError(error, while: "opening the prefilled data")
    }
    if try Self.read(file, 0, Self.zstdMagic.count) == Self.zstdMagic {
      decoder = ZstdStreamDecoder()
    }
  }

  private static func read(
    _ file: any File, _ offset: Int, _ count: Int
  ) throws(TidemarkError) -> [UInt8] {
    do throws(FileSystemError) { return try file.read(count, at: offset) } catch {
      throw TidemarkError(error, while: "reading the prefilled data")
    }
  }

  /// The hash of the file as it is, compressed or not.
  func contentHash() throws(TidemarkError) -> [UInt8] {
    var hash = SHA256()
    var offset = 0
    while true {
      let piece = try Self.read(file, offset, Self.readBytes)
      guard !piece.isEmpty else { return hash.digest }
      hash.add(piece.rawSpan)
      offset += piece.count
    }
  }

  /// The next lines; nil at the end.
  /// - Throws: `coding` for what is no NDJSON.
  mutating func next() throws(TidemarkError) -> LineChunk? {
    while true {
      do throws(LineError) {
        if let chunk = try splitter.next() { return chunk }
      } catch { throw describe(error) }
      guard !isAtEnd else { return nil }
      try advance()
    }
  }

  private mutating func advance() throws(TidemarkError) {
    if input.isEmpty {
      input = try Self.read(file, offset, Self.readBytes)
      offset += input.count
      isAtEnd = input.isEmpty
    }
    var content: [UInt8] = []
    do throws(FormatError) {
      if isAtEnd {
        try decoder?.finish()
      } else if let decoder {
        let step = try decoder.decode(
          input.rawSpan, appendingTo: &content, atMost: Self.readBytes)
        input.removeFirst(step.consumed)
      } else {
        swap(&content, &input)
      }
    } catch {
      throw TidemarkError(
        .coding, "the prefilled data is no good zstd file: \(error.reason)", file: path,
        cause: error)
    }
    splitter.append(content.rawSpan)
    if isAtEnd { splitter.finish() }
  }

  func describe(_ error: LineError) -> TidemarkError {
    TidemarkError(.coding, "the prefilled data, \(error)", file: path, cause: error)
  }
}
