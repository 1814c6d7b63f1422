extension AttachmentFiles {
  /// Replaces an attachment's file by a stub, which says that the content is elsewhere, in one
  /// rename. Readers that have the old file open go on with it.
  package func releaseContent(of id: AttachmentID) throws(TidemarkError) {
    guard let reader = try self.open(id) else { return }
    reader.close()
    try prepareDirectory()
    _ = try adopt(try writeStub(id), as: id, bytes: 0)
  }

  /// Writes and syncs a stub under a temporary name: a header alone, marked as released.
  /// - Returns: its path, for the caller to rename.
  func writeStub(_ id: AttachmentID) throws(TidemarkError) -> String {
    let path = newPath()
    // A stub has no content to protect, so it is never encrypted.
    var header = AttachmentHeader(id: id, number: newNumber())
    header.isReleased = true
    do throws(FileSystemError) {
      let file = try fileSystem.open(path, .create)
      defer { file.close() }
      try file.writeFully(header.encoded().rawSpan, at: 0)
      try file.sync()
    } catch {
      discard(path)
      throw TidemarkError(error, while: "releasing an attachment")
    }
    return path
  }

  /// The header of the file that is named after a hash, whole or stub; nil where there is no file.
  package func header(of hash: [UInt8]) throws(TidemarkError) -> AttachmentHeader? {
    let name = AttachmentID.text(hash)
    let bytes: [UInt8]?
    do {
      bytes = try fileSystem.reading(directory + "/" + name) { (file) throws(FileSystemError) in
        try file.read(AttachmentHeader.byteCount, at: 0)
      }
    } catch { throw TidemarkError(error, while: "looking at an attachment") }
    guard let bytes else { return nil }
    do throws(FormatError) {
      let header = try AttachmentHeader(decoding: bytes)
      guard header.id.hash == hash else { throw FormatError("the file has another's name") }
      return header
    } catch { throw .damagedAttachment(name, error) }
  }

  /// Copies the files of all attachments as they are to another store's directory, syncing each.
  /// - Parameter checks: whether to read each copy whole, and remove it if it is damaged.
  /// - Returns: the errors of the attachments that are not in the copy.
  package func copy(
    to target: String, _ targetSystem: any FileSystem, checks: Bool = false
  ) throws(TidemarkError) -> [TidemarkError] {
    let hashes = try hashes()
    guard !hashes.isEmpty else { return [] }
    let copies = AttachmentFiles(targetSystem, store: target, keys: keys, random: random)
    var faults: [TidemarkError] = []
    do throws(FileSystemError) {
      if try targetSystem.kind(copies.directory) == nil {
        try targetSystem.createDirectory(copies.directory)
      }
    } catch { throw TidemarkError(error, while: "copying attachments") }
    for hash in hashes {
      var fault = try copy(hash, to: copies)
      if fault == nil, checks { fault = try copies.fault(of: hash) }
      guard let fault else { continue }
      faults.append(fault)
      try? targetSystem.remove(copies.directory + "/" + AttachmentID.text(hash))
    }
    do throws(FileSystemError) {
      try targetSystem.syncDirectory(copies.directory)
      try targetSystem.syncDirectory(target)
    } catch { throw TidemarkError(error, while: "copying attachments") }
    return faults
  }

  /// Reads an attachment whole; of a stub, its header.
  /// - Returns: the error that says what is damaged; nil for nothing.
  func fault(of hash: [UInt8]) throws(TidemarkError) -> TidemarkError? {
    do throws(TidemarkError) {
      guard let header = try header(of: hash), !header.isReleased else { return nil }
      try self.open(header.id)?.verify()
      return nil
    } catch {
      guard error.isDamage else { throw error }
      return error.code == .damaged ? error : Self.unreadable(hash)
    }
  }

  static func unreadable(_ hash: [UInt8]) -> TidemarkError {
    .damagedAttachment(AttachmentID.text(hash), FormatError("the disk cannot read it"))
  }

  /// - Returns: why the copy is missing or cut short; nil where it is whole or not needed.
  private func copy(
    _ hash: [UInt8], to copies: AttachmentFiles
  ) throws(TidemarkError) -> TidemarkError? {
    let name = "/" + AttachmentID.text(hash)
    do throws(FileSystemError) {
      let source: any File
      do { source = try fileSystem.open(directory + name, .read) } catch {
        // A sweep has removed it meanwhile: then no entry of the copied log names it.
        if error.number == ErrorNumber.noEntry { return nil }
        guard error.isUnreadable else { throw error }
        return Self.unreadable(hash)
      }
      defer { source.close() }
      let file = try copies.fileSystem.open(copies.directory + name, .create)
      defer { file.close() }
      var offset = 0
      while true {
        let bytes: [UInt8]
        do { bytes = try source.read(1 << 20, at: offset) } catch {
          guard error.isUnreadable else { throw error }
          return Self.unreadable(hash)
        }
        guard !bytes.isEmpty else { break }
        try file.writeFully(bytes.rawSpan, at: offset)
        offset += bytes.count
      }
      try file.sync()
      return nil
    } catch { throw TidemarkError(error, while: "copying attachments") }
  }
}
