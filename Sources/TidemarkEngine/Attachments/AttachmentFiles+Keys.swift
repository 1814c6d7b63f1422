extension AttachmentFiles {
  /// The keys of files that are not encrypted with one; nil of a file that is not encrypted.
  ///
  /// A file that is not whole yet counts, too: its key's id stands where that of a header does. The
  /// note that content is elsewhere does not.
  package func keys(
    otherThan key: Encryption.KeyID
  ) throws(TidemarkError) -> [Encryption.KeyID?] {
    // This opening writes with the key for new files, so one look suffices.
    if state.withLock({ $0.onlyKey }) == key { return [] }
    let found: [Encryption.KeyID?]
    do throws(FileSystemError) {
      guard try fileSystem.kind(directory) == .directory else { return [] }
      let heads = try fileSystem.list(directory).map { (name) throws(FileSystemError) in
        try fileSystem.head(
          of: directory + "/" + name, AttachmentHeader.keyOffset + Encryption.KeyID.byteCount)
      }
      found = heads.filter { !$0.isEmpty && !AttachmentHeader.isReleased($0) }.map {
        Encryption.KeyID(Array($0.dropFirst(AttachmentHeader.keyOffset)))
      }
    } catch { throw TidemarkError(error, while: "looking at attachments") }
    let others = found.filter { $0 != key }
    if others.isEmpty { state.withLock { $0.onlyKey = key } }
    return others
  }

  /// Encrypts all attachments anew that do not have the key for new files.
  /// - Returns: why the first of those that cannot be read stays as it is.
  package func rewriteWithCurrentKey() throws(TidemarkError) -> TidemarkError? {
    guard let current = try keys.current(), try !keys(otherThan: current).isEmpty else {
      return nil
    }
    var failure: TidemarkError?
    for hash in try hashes() {
      do throws(TidemarkError) {
        guard let header = try header(of: hash), !header.isReleased,
          header.seal?.keyID != current
        else { continue }
        try rewrite(header.id)
      } catch {
        guard [.damaged, .wrongKey, .keyMissing].contains(error.code) else { throw error }
        failure = failure ?? error
      }
    }
    return failure
  }

  /// Writes an attachment anew, with the key for new files.
  func rewrite(_ id: AttachmentID) throws(TidemarkError) {
    guard let reader = try self.open(id) else { return }
    defer { reader.close() }
    let writer = try create()
    for number in 0..<reader.header.pieces {
      let piece = try reader.piece(number)
      try writer.write(piece.rawSpan)
    }
    _ = try writer.finish(expecting: id)
  }
}

extension FileSystem {
  /// Calls `body` with a file; nil where there is none.
  func reading<R>(
    _ path: String, _ body: (any File) throws(FileSystemError) -> R
  ) throws(FileSystemError) -> R? {
    do throws(FileSystemError) {
      let file = try self.open(path, .read)
      defer { file.close() }
      return try body(file)
    } catch {
      guard error.number == ErrorNumber.noEntry else { throw error }
      return nil
    }
  }

  /// The first bytes of a file, fewer where it is shorter; none where there is no file.
  func head(of path: String, _ count: Int) throws(FileSystemError) -> [UInt8] {
    try reading(path) { (file) throws(FileSystemError) in try file.read(count, at: 0) } ?? []
  }
}
