extension AttachmentFiles {
  /// Takes the content of an attachment away and leaves the note that it was here.
  package func releaseContent(of id: AttachmentID) throws(TidemarkError) {
    guard let reader = try self.open(id) else { return }
    reader.close()
    try prepareDirectory()
    _ = try adopt(try writeNote(id), as: id, bytes: 0)
  }

  /// Writes the note that an attachment's content is elsewhere, without its name.
  /// - Returns: where it is.
  func writeNote(_ id: AttachmentID) throws(TidemarkError) -> String {
    let path = newPath()
    // It has no content to protect, so it is never encrypted.
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

  /// The header of a file; nil where there is none.
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

  /// Copies all attachments as they are to another store's directory, syncing each.
  /// - Parameter checks: whether to read each copy whole, so that none stays that is damaged.
  /// - Returns: what is wrong with those that are not in the copy.
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

  /// Reads an attachment whole; of one that was released, its header.
  /// - Returns: what is wrong with it; nil for nothing.
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

  /// - Returns: why there is none in the copy; nil when there is.
  private func copy(
    _ hash: [UInt8], to copies: AttachmentFiles
  ) throws(TidemarkError) -> TidemarkError? {
    let name = "/" + AttachmentID.text(hash)
    do throws(FileSystemError) {
      let source: any File
      do { source = try fileSystem.open(directory + name, .read) } catch {
        // A sweep may have taken it meanwhile: then nothing of the copy names it.
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
