extension AttachmentFiles {
  /// The ids of the keys, other than `key`, that files are encrypted with; nil for one that is not.
  ///
  /// Unfinished files count: they too have the key's id in the header. Stubs, which say that the
  /// content is elsewhere (`isReleased`), do not: they are never encrypted.
  package func keys(otherThan key: Encryption.KeyID) throws(TidemarkError) -> [Encryption.KeyID?] {
    // Callers ask for the key that this opening gives new files, so "no other" stays true.
    if state.withLock({ $0.onlyKey }) == key { return [] }
    let heads: [[UInt8]]
    do throws(FileSystemError) {
      heads = try fileSystem.names(in: directory).map { (name) throws(FileSystemError) in
        try fileSystem.head(
          of: directory + "/" + name, AttachmentHeader.keyOffset + Encryption.KeyID.byteCount)
      }
    } catch { throw TidemarkError(error, while: "looking at attachments") }
    let found = heads.filter { !$0.isEmpty && !AttachmentHeader.isReleased($0) }.map {
      Encryption.KeyID(Array($0.dropFirst(AttachmentHeader.keyOffset)))
    }
    let others = found.filter { $0 != key }
    if others.isEmpty { state.withLock { $0.onlyKey = key } }
    return others
  }

  /// Rewrites the attachments that are encrypted with another key than new files are.
  /// - Returns: the error of the first that cannot be read; such stay as they are.
  package func rewriteWithCurrentKey() throws(TidemarkError) -> TidemarkError? {
    guard let current = try keys.current(), try !keys(otherThan: current).isEmpty else {
      return nil
    }
    var failure: TidemarkError?
    for hash in try hashes() {
      do throws(TidemarkError) {
        guard let header = try header(of: hash), !header.isReleased, header.seal?.keyID != current
        else { continue }
        try rewrite(header.id)
      } catch {
        guard [.damaged, .wrongKey, .keyMissing].contains(error.code) else { throw error }
        failure = failure ?? error
      }
    }
    return failure
  }

  /// Writes an attachment anew with the key for new files, and renames it over the old file.
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
  /// Calls `body` with a file, open for reading until `body` returns; nil where there is none.
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
