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

  /// A part of the body.
  struct Piece: Sendable {
    var range: Range<Int>
    var source: Source
  }

  /// By their beginnings.
  var pieces: [Piece]
  /// The length of the whole body.
  var total: Int

  /// The end of what is here without a gap from a byte on.
  func end(from start: Int) -> Int { pieces.lazy.map(\.range).end(from: start) }

  /// Calls `body` with a range, piece by piece; it must be here.
  func forEach(in range: Range<Int>, _ body: ([UInt8]) async throws -> Void) async throws {
    var offset = range.lowerBound
    for piece in pieces where piece.range.lowerBound <= offset {
      let end = min(range.upperBound, piece.range.upperBound)
      while offset < end {
        let chunk: [UInt8]
        let (start, rest) = (offset - piece.range.lowerBound, end - piece.range.lowerBound)
        switch piece.source {
        case .bytes(let bytes): chunk = Array(bytes[start..<rest])
        case .attachment(let reader):
          // A chunk ends where a piece of the file does, which is read as a whole.
          let next = (start / AttachmentReader.chunkBytes + 1) * AttachmentReader.chunkBytes
          chunk = try reader.read(start..<min(next, rest))
        }
        guard !chunk.isEmpty else { return }
        try await body(chunk)
        offset += chunk.count
      }
    }
  }
}

extension StoredContent {
  /// A body that is here as a whole.
  init(_ source: Source) {
    self.init(pieces: [Piece(range: 0..<source.length, source: source)], total: source.length)
  }
}
