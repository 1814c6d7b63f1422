/// Writes an attachment piece by piece; it has no name, and nobody sees it, until it is finished.
package final class AttachmentFileWriter: Sendable {
  private struct State {
    var file: (any File)?
    var hash = SHA256()
    /// Content that does not fill a piece yet.
    var rest: [UInt8] = []
    var pieces = 0
    var length = 0
    var isFinished = false
  }

  private let files: AttachmentFiles
  private let makeRoom: @Sendable (Int) -> Bool
  private let path: String
  private let key: NewFileKey?
  private let number: UInt64
  private let pieces: AttachmentPieces
  private let state = Lock(State())

  init(
    _ files: AttachmentFiles, makingRoom makeRoom: @escaping @Sendable (Int) -> Bool
  ) throws(TidemarkError) {
    self.files = files
    self.makeRoom = makeRoom
    key = try files.newKey()
    number = files.newNumber()
    pieces = AttachmentPieces(ofFile: number, key?.sealer(fileID: number))
    path = files.newPath()
    do {
      let file = try withRoom(AttachmentHeader.byteCount) { () throws(FileSystemError) in
        try files.fileSystem.open(path, .create)
      }
      state.withLock { $0.file = file }
      // For those who look whether anything is left under a former key.
      if let key { try write(key.keyID.bytes, at: AttachmentHeader.keyOffset, to: file) }
    } catch {
      files.discard(path)
      throw TidemarkError(error, while: "beginning an attachment")
    }
  }

  deinit { cancel() }

  /// Bytes of content that were written.
  package var length: Int { state.withLock { $0.length } }

  /// Appends content.
  /// - Throws: `limitExceeded`, `noSpace` and other errors of the system; then nothing more can be
  ///   written, and nothing of it is kept.
  package func write(_ bytes: RawSpan) throws(TidemarkError) {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      guard state.file != nil, !state.isFinished else {
        throw TidemarkError(.closed, "the attachment is finished; begin another one")
      }
      guard bytes.byteCount <= Limits.attachmentBytes - state.length else {
        discard(&state)
        throw TidemarkError(
          .limitExceeded, "an attachment of more than \(Limits.attachmentBytes >> 30) GiB")
      }
      state.length += bytes.byteCount
      state.hash.add(bytes)
      var start = 0
      while start < bytes.byteCount {
        let count = min(AttachmentHeader.pieceBytes - state.rest.count, bytes.byteCount - start)
        state.rest.append(copying: bytes.extracting(start..<(start + count)))
        start += count
        if state.rest.count == AttachmentHeader.pieceBytes { try writePiece(&state) }
      }
    }
  }

  private func writePiece(_ state: inout State) throws(TidemarkError) {
    let number = state.pieces
    do {
      try pieces.encode(&state.rest, number, random: files.random)
      if let file = state.file { try write(state.rest, at: pieces.offset(of: number), to: file) }
    } catch {
      discard(&state)
      throw TidemarkError(error, writing: "an attachment")
    }
    state.rest.removeAll(keepingCapacity: true)
    state.pieces += 1
  }

  /// Syncs the attachment and gives it its name.
  /// - Parameter expected: the content that it must be; nil for any.
  /// - Returns: keeps it until an entry names it.
  /// - Throws: `damaged` where it is not what was expected; nothing is kept then.
  package func finish(expecting expected: AttachmentID? = nil) throws(TidemarkError)
    -> AttachmentHold
  {
    let (id, bytes) = try state.withLock {
      (state: inout State) throws(TidemarkError) -> (AttachmentID, Int) in
      guard let file = state.file, !state.isFinished else {
        throw TidemarkError(.closed, "the attachment is finished, or failed; begin another one")
      }
      if !state.rest.isEmpty { try writePiece(&state) }
      let id = AttachmentID(hash: state.hash.digest, length: UInt64(state.length))
      guard expected == nil || expected == id else {
        discard(&state)
        throw TidemarkError(.damaged, "the content is not that of the attachment asked for")
      }
      var header = AttachmentHeader(id: id, number: number)
      do {
        try header.seal(with: key)
        try write(header.encoded(), at: 0, to: file)
        try file.sync()
      } catch {
        discard(&state)
        throw TidemarkError(error, writing: "an attachment")
      }
      file.close()
      state.file = nil
      state.isFinished = true
      return (id, header.fileBytes)
    }
    do throws(TidemarkError) {
      let hold = try files.adopt(path, as: id, bytes: bytes)
      // A change of keys may have passed this file by while it had no name.
      if try files.keys.current() != key?.keyID { try files.rewrite(id) }
      return hold
    } catch {
      files.discard(path)
      throw error
    }
  }

  private func write(
    _ bytes: [UInt8], at offset: Int, to file: any File
  ) throws(FileSystemError) {
    try withRoom(bytes.count) { () throws(FileSystemError) in
      try file.writeFully(bytes.rawSpan, at: offset)
    }
  }

  /// Takes a step, and takes it again as long as the disk is full and somebody makes room.
  private func withRoom<R>(
    _ bytes: Int, _ step: () throws(FileSystemError) -> R
  ) throws(FileSystemError) -> R {
    for _ in 0..<Self.attempts {
      do throws(FileSystemError) { return try step() } catch {
        guard [ErrorNumber.noSpace, ErrorNumber.quotaExceeded].contains(error.number),
          makeRoom(bytes)
        else { throw error }
      }
    }
    return try step()
  }

  private static let attempts = 8

  /// Gives up what was written.
  package func cancel() { state.withLock { discard(&$0) } }

  private func discard(_ state: inout State) {
    guard let file = state.file else { return }
    file.close()
    state.file = nil
    files.discard(path)
  }
}
