/// Writes an attachment piece by piece, to a file under a temporary name that nobody opens until
/// ``finish(expecting:)`` names it after its content. A writer that is let go of removes the file.
package final class AttachmentFileWriter: Sendable {
  private struct State {
    /// Nil once the attachment is finished, has failed or was cancelled.
    var file: (any File)?
    var hash = SHA256()
    /// Content that does not fill a piece yet.
    var rest: [UInt8] = []
    var pieces = 0
    var length = 0
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
    (self.files, self.makeRoom) = (files, makeRoom)
    key = try files.newKey()
    number = files.newNumber()
    pieces = AttachmentPieces(number: number, sealer: key?.sealer(fileID: number))
    path = files.newPath()
    do {
      let file = try withRoom(AttachmentHeader.byteCount) { () throws(FileSystemError) in
        try files.fileSystem.open(path, .create)
      }
      state.withLock { $0.file = file }
      // `AttachmentFiles.keys(otherThan:)` finds a former key of unfinished files here.
      if let key { try write(key.keyID.bytes, at: AttachmentHeader.keyOffset, to: file) }
    } catch {
      files.discard(path)
      throw TidemarkError(error, while: "beginning an attachment")
    }
  }

  deinit { cancel() }

  /// Bytes of content so far.
  package var length: Int { state.withLock { $0.length } }

  /// Appends content.
  /// - Throws: `limitExceeded`, `noSpace` and other errors of the system; then the file is removed,
  ///   and further calls throw `closed`.
  package func write(_ bytes: RawSpan) throws(TidemarkError) {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      guard state.file != nil else {
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
      // Turns `rest` into its stored form: after an error the content is lost, and the file goes.
      try pieces.encode(&state.rest, number, random: files.random)
      if let file = state.file { try write(state.rest, at: pieces.offset(of: number), to: file) }
    } catch {
      discard(&state)
      throw TidemarkError(error, writing: "an attachment")
    }
    state.rest.removeAll(keepingCapacity: true)
    state.pieces += 1
  }

  /// Syncs the attachment, then gives it its name: a file with a name is always whole.
  /// - Parameter expected: the content that it must be; nil for any.
  /// - Returns: a hold that keeps the file until an entry that names it is committed.
  /// - Throws: `damaged` where the content is not the expected one; then the file is removed.
  package func finish(expecting expected: AttachmentID? = nil) throws(TidemarkError)
    -> AttachmentHold
  {
    let (id, bytes) = try state.withLock {
      (state: inout State) throws(TidemarkError) -> (AttachmentID, Int) in
      guard let file = state.file else {
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
      return (id, header.fileBytes)
    }
    do throws(TidemarkError) {
      let hold = try files.adopt(path, as: id, bytes: bytes)
      // A change of keys rewrites files that have names: it may have missed this one before.
      if try files.keys.current() != key?.keyID { try files.rewrite(id) }
      return hold
    } catch {
      // Removes a file that got no name; after `adopt` there is none at `path`.
      files.discard(path)
      throw error
    }
  }

  private func write(_ bytes: [UInt8], at offset: Int, to file: any File) throws(FileSystemError) {
    try withRoom(bytes.count) { () throws(FileSystemError) in
      try file.writeFully(bytes.rawSpan, at: offset)
    }
  }

  /// Runs `step`, and again as long as the disk is full and `makeRoom` says that it made room.
  private func withRoom<R>(
    _ bytes: Int, _ step: () throws(FileSystemError) -> R
  ) throws(FileSystemError) -> R {
    for _ in 0..<Self.attempts {
      do throws(FileSystemError) { return try step() } catch {
        guard error.isDiskFull, makeRoom(bytes) else { throw error }
      }
    }
    return try step()
  }

  private static let attempts = 8

  /// Removes an unfinished file; does nothing after ``finish(expecting:)`` or an error.
  package func cancel() { state.withLock { discard(&$0) } }

  private func discard(_ state: inout State) {
    guard let file = state.file else { return }
    file.close()
    state.file = nil
    files.discard(path)
  }
}
