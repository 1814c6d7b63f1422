public import TidemarkEngine

/// An attachment whose content is durable on disk, and which an entry may name.
///
/// The content is kept as long as this value, a copy of it, or a batch that names it exists. After
/// that the next sweep removes it, unless an entry was committed that names it.
public struct StagedAttachment: Sendable, Hashable {
  package let hold: AttachmentHold

  package init(hold: AttachmentHold) { self.hold = hold }

  /// The attachment's name.
  public var reference: AttachmentReference { AttachmentReference(hold.id) }

  public static func == (one: Self, other: Self) -> Bool { one.hold.id == other.hold.id }
  public func hash(into hasher: inout Hasher) { hasher.combine(hold.id) }
}

/// Writes an attachment piece by piece: content of any length, of which no more than a piece is in
/// memory.
///
/// ```swift
/// let writer = try store.attachmentWriter()
/// while let chunk = try await camera.next() { try writer.write(chunk) }
/// try await store.put("clip/1", "", options: PutOptions(attachment: try writer.finish()))
/// ```
/// A writer that is released before it is finished leaves nothing on the disk.
public final class AttachmentWriter: Sendable {
  private let file: AttachmentFileWriter

  init(_ file: AttachmentFileWriter) { self.file = file }

  /// Bytes that were written so far.
  public var length: Int { file.length }

  /// Appends content; may block for as long as the system takes to write it.
  /// - Throws: `noSpace`, `limitExceeded` beyond 1 TiB, `inputOutput`; then the writer is of no
  ///   more use and what it wrote is removed. `closed` after ``finish()`` or ``cancel()``.
  public func write(_ bytes: some BytesConvertible) throws(TidemarkError) {
    try bytes.withBytes { (bytes) throws(TidemarkError) in try file.write(bytes) }
  }

  /// Syncs the content to the disk and gives it its name; blocks for as long as that takes.
  /// - Returns: the attachment, for a put to name.
  public func finish() throws(TidemarkError) -> StagedAttachment {
    StagedAttachment(hold: try file.finish())
  }

  /// Removes what was written; does nothing after ``finish()``.
  public func cancel() { file.cancel() }
}

/// Reads an attachment, from any place of it.
///
/// Each piece is compared with its checksum: damage is an error that says where it is.
/// The content stays readable through an open reader when its entry is deleted and its file swept.
public final class AttachmentReader: Sendable {
  private let file: AttachmentFileReader

  init(_ file: AttachmentFileReader) { self.file = file }

  /// The attachment's name.
  public var reference: AttachmentReference { AttachmentReference(file.header.id) }

  /// The length of the content, in bytes.
  public var length: Int { file.length }

  /// Most bytes of one chunk.
  public static let chunkBytes = AttachmentHeader.pieceBytes

  /// Reads content.
  /// - Parameters:
  ///   - range: the bytes to read; those behind the end are left out.
  /// - Returns: the bytes, all of them in memory.
  /// - Throws: `damaged` with file and offset; `inputOutput`.
  public func read(_ range: Range<Int>) throws(TidemarkError) -> [UInt8] {
    guard range.lowerBound >= 0 else {
      throw TidemarkError(.invalidArgument, "an attachment begins at 0")
    }
    let end = min(range.upperBound, length)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(max(0, end - range.lowerBound))
    var offset = range.lowerBound
    while offset < end {
      let part = try file.read(at: offset, count: end - offset)
      bytes += part
      offset += part.count
    }
    return bytes
  }

  /// Calls `body` with one chunk after the other, from the beginning to the end.
  /// - Throws: as ``read(_:)``, and what `body` throws.
  public func forEachChunk(_ body: ([UInt8]) throws -> Void) throws {
    var offset = 0
    while offset < length {
      let chunk = try file.read(at: offset, count: Self.chunkBytes)
      try body(chunk)
      offset += chunk.count
    }
  }

  /// The content, chunk by chunk.
  public var chunks: Chunks { Chunks(file: file) }

  /// The content of an attachment, chunk by chunk.
  public struct Chunks: AsyncSequence, Sendable {
    let file: AttachmentFileReader

    /// Begins to read.
    public func makeAsyncIterator() -> Iterator { Iterator(file: file) }

    /// Reads one chunk after the other.
    public struct Iterator: AsyncIteratorProtocol {
      let file: AttachmentFileReader
      private var offset = 0

      init(file: AttachmentFileReader) { self.file = file }

      /// The next chunk; nil behind the last.
      public mutating func next() async throws(TidemarkError) -> [UInt8]? {
        guard offset < file.length else { return nil }
        let chunk = try file.read(at: offset, count: AttachmentReader.chunkBytes)
        offset += chunk.count
        return chunk
      }
    }
  }
}
