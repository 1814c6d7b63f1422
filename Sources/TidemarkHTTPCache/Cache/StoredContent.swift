internal import Tidemark

/// The body of a stored response, as far as it is here.
struct StoredContent: Sendable {
  enum Source: Sendable {
    case bytes([UInt8])
    case attachment(AttachmentReader)

    var length: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .attachment(let reader): reader.length
      }
    }
  }

  /// A part of the body, and where it begins in it.
  struct Piece: Sendable {
    var start: Int
    var source: Source
  }

  /// By their beginnings.
  var pieces: [Piece]
  /// The length of the whole body.
  var total: Int

  /// A body that is here as a whole.
  init(_ source: Source) {
    pieces = [Piece(start: 0, source: source)]
    total = source.length
  }

  init(_ pieces: [Piece], total: Int) { (self.pieces, self.total) = (pieces, total) }

  /// The end of what is here without a gap from a byte on.
  func end(from start: Int) -> Int {
    pieces.reduce(start) { $1.start <= $0 ? max($0, $1.start + $1.source.length) : $0 }
  }

  /// Calls `body` with a range, piece by piece; it must be here.
  func forEach(in range: Range<Int>, _ body: ([UInt8]) async throws -> Void) async throws {
    var offset = range.lowerBound
    for piece in pieces where piece.start <= offset {
      let end = min(range.upperBound, piece.start + piece.source.length)
      while offset < end {
        let chunk: [UInt8]
        switch piece.source {
        case .bytes(let bytes): chunk = Array(bytes[offset - piece.start..<end - piece.start])
        case .attachment(let reader):
          let start = offset - piece.start
          // A chunk ends where a piece of the file does, which is read as a whole.
          let next = (start / AttachmentReader.chunkBytes + 1) * AttachmentReader.chunkBytes
          chunk = try reader.read(start..<min(next, end - piece.start))
        }
        guard !chunk.isEmpty else { return }
        try await body(chunk)
        offset += chunk.count
      }
    }
  }
}
