/// Reads a file through one buffer that moves forward: for walks over frames, on one thread.
package final class WindowReader {
  private let file: any File
  /// The file's length when the walk began.
  package let length: Int
  private let windowBytes: Int
  private var buffer: [UInt8] = []
  /// Where in the file `buffer` begins.
  private var start = 0

  package init(_ file: any File, windowBytes: Int = 256 << 10) throws(FileSystemError) {
    self.file = file
    self.windowBytes = windowBytes
    length = try file.length()
  }

  /// Calls `body` with `count` bytes at `offset`, fewer at the end of the file.
  package func withBytes<R>(
    at offset: Int, count: Int, _ body: (RawSpan) throws(FormatError) -> R
  ) throws(LogReadError) -> R {
    let count = max(0, min(count, length - offset))
    if offset < start || offset + count > start + buffer.count {
      do {
        buffer = try file.read(max(0, min(max(count, windowBytes), length - offset)), at: offset)
      } catch { throw .system(error) }
      start = offset
    }
    let available = max(0, min(count, start + buffer.count - offset))
    let bytes = buffer
    do {
      return try body(try bytes.rawSpan.slice(offset - start, available))
    } catch { throw .format(error) }
  }

  /// The header of a frame.
  /// - Parameter end: where frames end; nothing is read from there on.
  func header(at offset: Int, salt: UInt32, end: Int = .max) throws(LogReadError) -> FrameHeader {
    try withBytes(at: offset, count: min(FormatConstants.frameHeaderBytes, end - offset)) {
      (bytes) throws(FormatError) in
      try FrameHeader(decoding: bytes, salt: salt, offset: offset)
    }
  }

  /// The front of a frame: its block table and heads, which are the entries without values.
  func front(
    of header: FrameHeader, at offset: Int, _ codecs: FrameCodecs
  ) throws(LogReadError) -> DecodedFront {
    try withBytes(at: offset + FormatConstants.frameHeaderBytes, count: header.frontLength) {
      (bytes) throws(FormatError) in
      try DecodedFront(bytes, header: header, offset: offset, codecs: codecs)
    }
  }
}

/// Why something could not be read from the log: the system failed, or the bytes are wrong.
package enum LogReadError: Error, Sendable {
  case system(FileSystemError)
  case format(FormatError)

  /// What is wrong with the bytes; throws where the system failed.
  func reason() throws(FileSystemError) -> FormatError {
    switch self {
    case .system(let error): throw error
    case .format(let reason): return reason
    }
  }
}
