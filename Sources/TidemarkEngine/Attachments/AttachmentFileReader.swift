/// Reads an attachment's file: a header, then the content in pieces of 64 KiB, each with a checksum
/// or, encrypted, a tag. Bytes that differ from what was written are never returned. Owns `file`,
/// whose descriptor goes back with the last reference, also when `init` throws.
package final class AttachmentFileReader: Sendable {
  package let header: AttachmentHeader
  private let file: any File
  private let pieces: AttachmentPieces
  /// The piece that was read last, and its number: the next read mostly begins in that piece.
  private let lastPiece = Lock<(number: Int, bytes: [UInt8])?>(nil)

  init(_ file: any File, of id: AttachmentID, _ keys: KeyRing) throws(TidemarkError) {
    self.file = file
    let (bytes, length): ([UInt8], Int)
    do {
      bytes = try file.read(AttachmentHeader.byteCount, at: 0)
      length = try file.length()
    } catch { throw TidemarkError(error, while: "reading an attachment") }
    do throws(FormatError) {
      header = try AttachmentHeader(decoding: bytes)
      guard header.id == id else { throw FormatError("the file has another's name") }
      guard length == header.fileBytes else {
        throw FormatError("the file has \(length) bytes instead of \(header.fileBytes)")
      }
    } catch { throw .damagedAttachment(id.fileName, error) }
    var sealer: BlockSealer?
    if let seal = header.seal {
      let key = try keys.key(seal.keyID)
      do { sealer = try seal.sealer(key: key, fileID: header.number) } catch {
        throw .damagedAttachment(id.fileName, error)
      }
    }
    pieces = AttachmentPieces(number: header.number, sealer: sealer, hasSalts: header.hasSalts)
  }

  deinit { file.close() }

  /// The length of the content, in bytes.
  package var length: Int { Int(header.id.length) }

  package func close() { file.close() }

  /// Reads the whole content into memory: for content that is not large.
  package func content() throws(TidemarkError) -> [UInt8] {
    var content: [UInt8] = []
    content.reserveCapacity(length)
    for number in 0..<header.pieces { content += try piece(number) }
    return content
  }

  /// - Parameters:
  ///   - offset: the first byte to read, counted from the beginning of the content.
  ///   - count: bytes at most; fewer are returned where the piece at `offset` ends.
  /// - Throws: `damaged` with the place.
  package func read(at offset: Int, count: Int) throws(TidemarkError) -> [UInt8] {
    guard offset >= 0, count >= 0 else {
      throw TidemarkError(.invalidArgument, "an attachment is read from 0 on, and not backwards")
    }
    guard offset < length, count > 0 else { return [] }
    let piece = offset / AttachmentHeader.pieceBytes
    let start = offset % AttachmentHeader.pieceBytes
    let bytes = try self.piece(piece)
    return Array(bytes[start..<min(bytes.count, start + min(count, bytes.count))])
  }

  func piece(_ number: Int) throws(TidemarkError) -> [UInt8] {
    if let last = lastPiece.withLock({ $0 }), last.number == number { return last.bytes }
    let count = header.count(ofPiece: number)
    let offset = pieces.offset(of: number)
    let stored: [UInt8]
    do { stored = try file.read(count + pieces.overhead, at: offset) } catch {
      throw TidemarkError(error, while: "reading an attachment")
    }
    let bytes: [UInt8]
    do throws(FormatError) {
      guard stored.count == count + pieces.overhead else { throw FormatError("it ends early") }
      bytes = try pieces.decode(stored, number)
    } catch { throw .damagedAttachment(header.id.fileName, error, offset: offset) }
    lastPiece.withLock { $0 = (number, bytes) }
    return bytes
  }

  /// Reads the whole content and compares it with the SHA-256 that the file is named after.
  package func verify() throws(TidemarkError) {
    var hash = SHA256()
    for number in 0..<header.pieces {
      let piece = try piece(number)
      hash.add(piece.rawSpan)
    }
    guard hash.digest == header.id.hash else {
      throw .damagedAttachment(header.id.fileName, FormatError("the content is not what it was"))
    }
  }
}
