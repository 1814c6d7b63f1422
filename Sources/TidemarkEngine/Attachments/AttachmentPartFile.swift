/// The file of an upload: content that arrives in parts, over days if need be, beside the
/// attachments. Once it is whole it is renamed and becomes one of them.
///
/// It has the format of an attachment's file: a header, which names the content, and pieces of
/// 64 KiB. Parts are not synced one by one: after an opening the pieces in the file count only once
/// ``verifyStored(most:)`` has read them, so that fewer may count than before. Content is *whole*
/// when all of it has come, has the right hash and is synced; then its file changes no more.
/// `AttachmentFiles` gives all who ask for a name the same object.
package final class AttachmentPartFile: Sendable {
  private struct State {
    var header: AttachmentHeader
    /// The hash of the first `pieces` pieces.
    var hash = SHA256()
    /// Pieces that count: they were verified, or written by this object.
    var pieces = 0
    /// Pieces that the file may have; those behind `pieces` have yet to be verified.
    var stored = 0
    var unsynced = 0
    var isWhole = false
    /// Whether the file was removed, or has become an attachment: nothing may touch it any more.
    var isOver = false

    /// Bytes of content that count.
    var received: Int { min(pieces * AttachmentHeader.pieceBytes, Int(header.id.length)) }
    var isToBeCompleted: Bool { !isWhole && pieces == header.pieces }
  }

  /// Unsynced bytes after which a part syncs, so that the sync at the end is quick.
  private static let bytesUntilSync = 64 << 20
  private static let subject = "a part of an attachment"

  package let id: AttachmentID
  private let files: AttachmentFiles
  private let path: String
  private let pieces: AttachmentPieces
  private let state: Lock<State>

  init(_ files: AttachmentFiles, beginning id: AttachmentID, path: String, now: UInt64)
    throws(TidemarkError)
  {
    (self.files, self.id, self.path) = (files, id, path)
    let key = try files.newKey()
    var header = AttachmentHeader(id: id, number: files.newNumber())
    header.touched = now
    pieces = AttachmentPieces(number: header.number, sealer: key?.sealer(fileID: header.number))
    do {
      try header.seal(with: key)
      let file = try files.fileSystem.open(path, .create)
      defer { file.close() }
      try file.writeFully(header.encoded().rawSpan, at: 0)
    } catch { throw TidemarkError(error, writing: Self.subject) }
    state = Lock(State(header: header))
  }

  /// Opens a file that was begun before.
  /// - Throws: `damaged`, also for a former key: a change of keys does not rewrite part files.
  init(_ files: AttachmentFiles, resuming id: AttachmentID, path: String) throws(TidemarkError) {
    (self.files, self.id, self.path) = (files, id, path)
    do {
      let file = try files.fileSystem.open(path, .readWrite)
      defer { file.close() }
      let header = try AttachmentHeader(decoding: try file.read(AttachmentHeader.byteCount, at: 0))
      guard header.id == id, !header.isReleased else { throw FormatError("the file is another's") }
      guard try files.keys.current() == header.seal?.keyID else {
        throw FormatError("it does not have the key for new files")
      }
      let sealer = try header.seal.map { (seal) throws in
        try seal.sealer(key: files.keys.key(seal.keyID), fileID: header.number)
      }
      pieces = AttachmentPieces(number: header.number, sealer: sealer, hasSalts: header.hasSalts)
      let length = try file.length()
      var known = State(header: header)
      // The last piece is shorter than the others, so only a file of full length has it.
      known.stored =
        length >= header.fileBytes
        ? header.pieces
        : min(
          (length - AttachmentHeader.byteCount)
            / (AttachmentHeader.pieceBytes + pieces.overhead), max(0, header.pieces - 1))
      state = Lock(known)
    } catch let error as FormatError {
      throw .damagedAttachment(id.fileName, error)
    } catch { throw TidemarkError(error, writing: Self.subject) }
  }

  /// Bytes of content that count, from the beginning on.
  package var received: Int { state.withLock { $0.received } }
  /// Whether all content has come, has the right hash and is synced.
  package var isWhole: Bool { state.withLock { $0.isWhole && !$0.isOver } }
  /// Whether the file may have all pieces, some of them not verified.
  package var mayBeWhole: Bool { state.withLock { $0.isOver || $0.stored == $0.header.pieces } }
  /// Whether the file was removed, or has become an attachment.
  package var isOver: Bool { state.withLock { $0.isOver } }
  /// The user's key that its file is encrypted with.
  var keyID: Encryption.KeyID? { state.withLock { $0.header.seal?.keyID } }
  /// When a part came last, in milliseconds since 1970.
  package var touched: UInt64 { state.withLock { $0.header.touched } }
  /// Lowers `touched` to now: the clock may have been ahead when the last part came.
  package func capTouched(at now: UInt64) {
    state.withLock { $0.header.touched = min($0.header.touched, now) }
  }

  /// Bytes that the file takes; 0 where it is over.
  package var storedBytes: Int {
    state.withLock { state in
      if state.isOver { return 0 }
      return min(pieces.offset(of: state.stored), state.header.fileBytes)
    }
  }

  /// Reads pieces that an earlier opening has left, and counts those that are as they were written.
  /// Completes the content if no part is missing.
  /// - Parameter most: about how many bytes to read.
  /// - Returns: whether all pieces were read, so that parts can be appended.
  /// - Throws: `damaged` for complete content with another hash: the file is removed.
  package func verifyStored(most: Int) throws(TidemarkError) -> Bool {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      try checkUnderWay(state)
      guard state.pieces < state.stored || state.isToBeCompleted else { return true }
      do {
        let file = try files.fileSystem.open(path, .readWrite)
        defer { file.close() }
        var left = most
        while state.pieces < state.stored, left > 0 {
          guard let piece = try self.piece(state.pieces, of: file, state.header) else {
            // This piece is torn or damaged: the sender repeats the content from here on.
            state.stored = state.pieces
            break
          }
          state.hash.add(piece.rawSpan)
          state.pieces += 1
          left -= piece.count
        }
        try syncIfDue(file, &state)
      } catch { throw TidemarkError(error, writing: Self.subject) }
      return state.pieces == state.stored
    }
  }

  /// - Returns: the content of a piece; nil where that is not as it was written.
  private func piece(
    _ number: Int, of file: any File, _ header: AttachmentHeader
  ) throws -> [UInt8]? {
    let count = header.count(ofPiece: number) + pieces.overhead
    let stored = try file.read(count, at: pieces.offset(of: number))
    return stored.count == count ? try? pieces.decode(stored, number) : nil
  }

  /// Appends the bytes of a part that continue the content, in whole pieces. Changes nothing if the
  /// part leaves a gap or brings nothing new, or pieces have yet to be verified.
  /// - Parameters:
  ///   - offset: how many bytes of the content come before the part.
  ///   - now: milliseconds since 1970.
  /// - Returns: how many bytes count now: the sender goes on from there.
  /// - Throws: `noSpace` and other errors of the system; what was there before still counts, unless
  ///   a sync failed. `damaged` for complete content with another hash: the file is removed.
  package func append(_ bytes: [UInt8], at offset: Int, now: UInt64) throws(TidemarkError) -> Int {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      try checkUnderWay(state)
      let known = state.received - offset
      guard state.pieces == state.stored, known >= 0, known < bytes.count else {
        return state.received
      }
      do {
        let file = try files.fileSystem.open(path, .readWrite)
        defer { file.close() }
        try write(bytes, from: known, to: file, &state)
        state.header.touched = now
        try file.writeFully(state.header.encoded().rawSpan, at: 0)
        try syncIfDue(file, &state)
      } catch { throw TidemarkError(error, writing: Self.subject) }
      return state.received
    }
  }

  private func write(
    _ bytes: [UInt8], from known: Int, to file: any File, _ state: inout State
  ) throws {
    var start = known
    while state.pieces < state.header.pieces {
      let number = state.pieces
      let count = state.header.count(ofPiece: number)
      guard bytes.count - start >= count else { return }
      var piece = Array(bytes[start..<start + count])
      var hash = state.hash
      hash.add(piece.rawSpan)
      try pieces.encode(&piece, number, random: files.random)
      // The state changes only after this: the next part overwrites a piece that was torn here.
      try file.writeFully(piece.rawSpan, at: pieces.offset(of: number))
      state.hash = hash
      state.pieces += 1
      state.stored = state.pieces
      state.unsynced += count
      start += count
    }
  }

  /// Syncs the partial upload's file once 64 MiB have come since the last sync. When the upload is
  /// complete its hash is compared first, and the directory is synced, too. After a failed sync the
  /// content of the disk is unknown, so the file is removed and the upload starts over.
  private func syncIfDue(_ file: any File, _ state: inout State) throws {
    let isComplete = state.isToBeCompleted
    guard isComplete || state.unsynced >= Self.bytesUntilSync else { return }
    do {
      if isComplete {
        guard state.hash.digest == id.hash else {
          throw TidemarkError(.damaged, "the content is not what its hash says")
        }
        try file.truncate(to: state.header.fileBytes)
      }
      try file.sync()
      if isComplete { try files.fileSystem.syncDirectory(files.directory) }
    } catch {
      if !AttachmentFiles.isTransient(error) { discard(&state) }
      throw error
    }
    state.unsynced = 0
    if isComplete { state.isWhole = true }
  }

  /// Reads content that is whole.
  /// - Returns: nil where the file is damaged; then it is removed.
  package func content() throws(TidemarkError) -> [UInt8]? {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      try checkUnderWay(state)
      guard state.isWhole else {
        throw TidemarkError(.invalidArgument, "the content is not whole yet")
      }
      do {
        let file = try files.fileSystem.open(path, .read)
        defer { file.close() }
        var content: [UInt8] = []
        content.reserveCapacity(Int(id.length))
        for number in 0..<state.header.pieces {
          guard let piece = try self.piece(number, of: file, state.header) else {
            discard(&state)
            return nil
          }
          content += piece
        }
        return content
      } catch { throw TidemarkError(error, writing: Self.subject) }
    }
  }

  /// Makes an attachment of content that is whole: renames its file.
  /// - Returns: a hold that keeps the attachment until an entry that names it is committed.
  /// - Throws: `closed` where the upload was cancelled. The file stays if the rename fails.
  package func finish() throws(TidemarkError) -> AttachmentHold {
    // Content of no bytes, which needs no part, is completed here.
    guard try verifyStored(most: 0), isWhole else {
      throw TidemarkError(.invalidArgument, "the content is not whole yet")
    }
    let header = state.withLock { $0.header }
    // Over before the rename, so that no part is written to an attachment; under the lock of
    // `files`, so that an upload of the same name that begins now finds this file or none.
    let hold = try files.adopt(path, as: id, bytes: header.fileBytes) { () throws(TidemarkError) in
      try state.withLock { (state: inout State) throws(TidemarkError) in
        try checkUnderWay(state)
        state.isOver = true
      }
    }
    // A change of keys rewrites only attachments: the key may have changed before the rename.
    if try files.keys.current() != header.seal?.keyID { try files.rewrite(id) }
    return hold
  }

  /// Ends the upload and removes the file, unless it is over already.
  package func cancel() { state.withLock { if !$0.isOver { discard(&$0) } } }

  private func discard(_ state: inout State) {
    state.isOver = true
    try? files.fileSystem.remove(path)
  }

  private func checkUnderWay(_ state: State) throws(TidemarkError) {
    guard !state.isOver else {
      throw TidemarkError(.closed, "the content has come, or was given up; begin again")
    }
  }
}
