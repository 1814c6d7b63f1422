/// Content that comes in parts, over days if need be: a file beside the attachments that becomes
/// one of them once it is whole.
///
/// Its header says what it is to become, and its pieces are those of an attachment's file. Parts
/// need not be on the disk before all are there: after an opening what is found is read and
/// compared before it counts, so that less may be there than was said. Content that is whole is
/// compared with its hash and on the disk, and nothing is written to its file any more. A file of
/// an encrypted store is encrypted from the first byte on.
package final class AttachmentPartFile: Sendable {
  private struct State {
    var header: AttachmentHeader
    var hash = SHA256()
    /// Pieces that are in the hash.
    var pieces = 0
    /// Pieces that the file may have, of which some may not have been looked at.
    var stored = 0
    var unsynced = 0
    var isWhole = false
    var isOver = false
  }

  /// Bytes after which the system is to bring what it has to the disk, so that the end is quick.
  private static let bytesUntilSync = 64 << 20
  private static let subject = "a part of an attachment"

  package let id: AttachmentID
  private let files: AttachmentFiles
  private let path: String
  private let pieces: AttachmentPieces
  private let state: Lock<State>

  /// Content that begins to come.
  init(_ files: AttachmentFiles, beginning id: AttachmentID, path: String, now: UInt64)
    throws(TidemarkError)
  {
    (self.files, self.id, self.path) = (files, id, path)
    let key = try files.newKey()
    var header = AttachmentHeader(id: id, number: files.newNumber())
    header.touched = now
    pieces = AttachmentPieces(ofFile: header.number, key?.sealer(fileID: header.number))
    do {
      try header.seal(with: key)
      let file = try files.fileSystem.open(path, .create)
      defer { file.close() }
      try file.writeFully(header.encoded().rawSpan, at: 0)
    } catch { throw TidemarkError(error, writing: Self.subject) }
    state = Lock(State(header: header))
  }

  /// Content that has begun to come before.
  /// - Throws: `damaged` where the file is of no use.
  init(_ files: AttachmentFiles, resuming id: AttachmentID, path: String) throws(TidemarkError) {
    (self.files, self.id, self.path) = (files, id, path)
    do {
      let file = try files.fileSystem.open(path, .readWrite)
      defer { file.close() }
      let header = try AttachmentHeader(
        decoding: try file.read(AttachmentHeader.byteCount, at: 0))
      guard header.id == id, !header.isReleased else {
        throw FormatError("the file is another's")
      }
      guard try files.keys.current() == header.seal?.keyID else {
        throw FormatError("it does not have the key for new files")
      }
      let sealer = try header.seal.map { (seal) throws in
        try seal.sealer(key: files.keys.key(seal.keyID), fileID: header.number)
      }
      pieces = AttachmentPieces(ofFile: header.number, sealer, hasSalts: header.hasSalts)
      let length = try file.length()
      var known = State(header: header)
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
  package var received: Int { state.withLock { Self.received($0) } }
  /// Whether all of it has come, is what its hash says, and is on the disk.
  package var isWhole: Bool { state.withLock { $0.isWhole && !$0.isOver } }
  /// Whether the file may have all of it, of which some may not have been looked at.
  package var mayBeWhole: Bool { state.withLock { $0.isOver || $0.stored == $0.header.pieces } }
  /// Whether it was given up, or has become an attachment.
  package var isOver: Bool { state.withLock { $0.isOver } }
  /// The user's key that its file is encrypted with.
  var keyID: Encryption.KeyID? { state.withLock { $0.header.seal?.keyID } }
  /// When a part came last, in milliseconds since 1970.
  package var touched: UInt64 { state.withLock { $0.header.touched } }
  /// Forgets a time that has not come yet: the clock may have been ahead when a part came.
  package func capTouched(at now: UInt64) {
    state.withLock { $0.header.touched = min($0.header.touched, now) }
  }

  /// Bytes on the disk; none where it is over.
  package var storedBytes: Int {
    state.withLock { state in
      if state.isOver { return 0 }
      return min(pieces.offset(of: state.stored), state.header.fileBytes)
    }
  }

  private static func received(_ state: State) -> Int {
    min(state.pieces * AttachmentHeader.pieceBytes, Int(state.header.id.length))
  }

  /// Looks at what an earlier opening has left.
  /// - Parameter most: so many bytes are read, about.
  /// - Returns: whether all was looked at, so that more can be appended.
  /// - Throws: `damaged` for content that is whole and not what its hash says: nothing is kept.
  package func look(most: Int) throws(TidemarkError) -> Bool {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      try checkUnderWay(state)
      guard state.pieces < state.stored || Self.isToBeCompleted(state) else { return true }
      do {
        let file = try files.fileSystem.open(path, .readWrite)
        defer { file.close() }
        var left = most
        while state.pieces < state.stored, left > 0 {
          guard let piece = try self.piece(state.pieces, of: file, state.header) else {
            // Nothing behind it counts: it is sent again.
            state.stored = state.pieces
            break
          }
          state.hash.add(piece.rawSpan)
          state.pieces += 1
          left -= piece.count
        }
        if Self.isToBeCompleted(state) { try complete(file, &state) }
      } catch { throw TidemarkError(error, writing: Self.subject) }
      return state.pieces == state.stored
    }
  }

  /// - Returns: nil for one that is not as it was written.
  private func piece(
    _ number: Int, of file: any File, _ header: AttachmentHeader
  ) throws -> [UInt8]? {
    let count = header.count(ofPiece: number) + pieces.overhead
    let stored = try file.read(count, at: pieces.offset(of: number))
    return stored.count == count ? try? pieces.decode(stored, number) : nil
  }

  /// Appends what of a part continues what is there, in whole pieces.
  /// - Parameters:
  ///   - offset: how many bytes of the content come before the part.
  ///   - now: milliseconds since 1970.
  /// - Returns: how many bytes count now.
  /// - Throws: `noSpace` and other errors of the system; what was there before still counts, unless
  ///   a sync failed. `damaged` for content that is not what its hash says: nothing is kept.
  package func append(
    _ bytes: [UInt8], at offset: Int, now: UInt64
  ) throws(TidemarkError) -> Int {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      try checkUnderWay(state)
      let known = Self.received(state) - offset
      guard state.pieces == state.stored, known >= 0, known < bytes.count else {
        return Self.received(state)
      }
      do {
        let file = try files.fileSystem.open(path, .readWrite)
        defer { file.close() }
        try write(bytes, from: known, to: file, &state)
        state.header.touched = now
        try file.writeFully(state.header.encoded().rawSpan, at: 0)
        if Self.isToBeCompleted(state) {
          try complete(file, &state)
        } else if state.unsynced >= Self.bytesUntilSync {
          try sync(file, &state)
          state.unsynced = 0
        }
      } catch { throw TidemarkError(error, writing: Self.subject) }
      return Self.received(state)
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
      // A piece that was not written whole is written once more.
      try file.writeFully(piece.rawSpan, at: pieces.offset(of: number))
      state.hash = hash
      state.pieces += 1
      state.stored = state.pieces
      state.unsynced += count
      start += count
    }
  }

  private static func isToBeCompleted(_ state: State) -> Bool {
    !state.isWhole && state.pieces == state.header.pieces
  }

  /// Compares content of which all has come, and brings it to the disk under its name.
  private func complete(_ file: any File, _ state: inout State) throws {
    do {
      guard state.hash.digest == id.hash else {
        throw TidemarkError(.damaged, "the content is not what its hash says")
      }
      try file.truncate(to: state.header.fileBytes)
      try file.sync()
      try files.fileSystem.syncDirectory(files.directory)
    } catch {
      if !AttachmentFiles.passes(error) { discard(&state) }
      throw error
    }
    state.isWhole = true
  }

  /// Reads content that is whole.
  /// - Returns: nil where it is not as it was written any more; nothing is kept of it then.
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

  /// Makes an attachment of content that is whole: gives it its name.
  /// - Returns: keeps it until an entry names it.
  /// - Throws: `closed` where somebody has given it up; what has come stays if a rename fails.
  package func finish() throws(TidemarkError) -> AttachmentHold {
    // Content of no bytes is whole without a part.
    guard try look(most: 0), isWhole else {
      throw TidemarkError(.invalidArgument, "the content is not whole yet")
    }
    let header = state.withLock { $0.header }
    // An upload of the same content that begins meanwhile finds either this file or none.
    let hold = try files.adopt(path, as: id, bytes: header.fileBytes) { () throws(TidemarkError) in
      try state.withLock { (state: inout State) throws(TidemarkError) in
        try checkUnderWay(state)
        state.isOver = true
      }
    }
    // A change of keys passes by what has no name yet.
    if try files.keys.current() != header.seal?.keyID { try files.rewrite(id) }
    return hold
  }

  /// Gives up what has come.
  package func cancel() { state.withLock { if !$0.isOver { discard(&$0) } } }

  /// A sync that failed says nothing of what is on the disk: the content begins anew.
  private func sync(_ file: any File, _ state: inout State) throws {
    do throws(FileSystemError) { try file.sync() } catch {
      if !AttachmentFiles.passes(error) { discard(&state) }
      throw error
    }
  }

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
