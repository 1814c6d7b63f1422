public import TidemarkEngine

/// An attachment whose content is on the disk, for an entry to name: put it in
/// ``PutOptions/attachment``.
///
/// The content is kept as long as this value, a copy of it, or a batch that names it exists. After
/// that the next sweep removes it, unless an entry was committed that names it.
public struct StagedAttachment: Sendable, Hashable {
  package let hold: AttachmentHold

  package init(hold: AttachmentHold) { self.hold = hold }

  /// The SHA-256 and the length of the content. Entries and readers name the attachment by it.
  public var reference: AttachmentReference { AttachmentReference(hold.id) }

  /// Whether both name the same content: the SHA-256 and the length decide.
  public static func == (one: Self, other: Self) -> Bool { one.hold.id == other.hold.id }
  /// Hashes the SHA-256 and the length of the content.
  public func hash(into hasher: inout Hasher) { hasher.combine(hold.id) }
}

/// Writes an attachment of any length, piece by piece, so that only one piece is in memory.
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

  /// The bytes of content that ``write(_:)`` has taken so far.
  public var length: Int { file.length }

  /// Appends bytes to the attachment's content. The call may block for as long as the system takes
  /// to write them.
  /// - Throws: `noSpace`, `limitExceeded` beyond 1 TiB, or `inputOutput`. The writer then refuses
  ///   further calls, and its file is removed. `closed` after ``finish()`` or ``cancel()``.
  public func write(_ bytes: some BytesConvertible) throws(TidemarkError) {
    try bytes.withBytes { (bytes) throws(TidemarkError) in try file.write(bytes) }
  }

  /// Syncs the content to the disk and computes its reference. The call blocks for as long as that
  /// takes.
  /// - Returns: the attachment; name it in ``PutOptions/attachment`` to keep it.
  public func finish() throws(TidemarkError) -> StagedAttachment {
    StagedAttachment(hold: try file.finish())
  }

  /// Removes the content that was written so far. After ``finish()`` the call does nothing.
  public func cancel() { file.cancel() }
}

/// Reads the content of an attachment, from any offset.
///
/// Each piece is compared with its checksum: damage is an error that says where it is.
/// The content stays readable through an open reader when its entry is deleted and its file swept.
public final class AttachmentReader: Sendable {
  private let file: AttachmentFileReader

  init(_ file: AttachmentFileReader) { self.file = file }

  /// The SHA-256 and the length of the attachment that this reader has open.
  public var reference: AttachmentReference { AttachmentReference(file.header.id) }

  /// The length of the attachment's content, in bytes.
  public var length: Int { file.length }

  /// The most bytes that ``forEachChunk(_:)`` and ``chunks`` hand over at a time.
  public static let chunkBytes = AttachmentHeader.pieceBytes

  /// Reads a range of the attachment's content into memory.
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

  /// The attachment's content as an asynchronous sequence of chunks, from the beginning to the end.
  public var chunks: Chunks { Chunks(file: file) }

  /// The content of an attachment as an asynchronous sequence; see ``AttachmentReader/chunks``.
  public struct Chunks: AsyncSequence, Sendable {
    let file: AttachmentFileReader

    /// Starts a new pass over the attachment, at its first byte.
    public func makeAsyncIterator() -> Iterator { Iterator(file: file) }

    /// One pass over the chunks of an attachment.
    public struct Iterator: AsyncIteratorProtocol {
      let file: AttachmentFileReader
      private var offset = 0

      init(file: AttachmentFileReader) { self.file = file }

      /// The next chunk of the attachment's content; nil at the end.
      /// - Throws: `damaged` with file and offset when a checksum does not match; `inputOutput`.
      public mutating func next() async throws(TidemarkError) -> [UInt8]? {
        guard offset < file.length else { return nil }
        let chunk = try file.read(at: offset, count: AttachmentReader.chunkBytes)
        offset += chunk.count
        return chunk
      }
    }
  }
}
