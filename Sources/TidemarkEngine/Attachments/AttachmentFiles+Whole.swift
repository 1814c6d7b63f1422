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
    guard let header = try header(ofFile: name) else { return nil }
    guard header.id.hash == hash else {
      throw .damagedAttachment(name, FormatError("the file has another's name"))
    }
    return header
  }

  /// The header of a file of attachments, whatever its name; nil where there is none.
  func header(ofFile name: String) throws(TidemarkError) -> AttachmentHeader? {
    let bytes: [UInt8]
    do throws(FileSystemError) {
      let file = try fileSystem.open(directory + "/" + name, .read)
      defer { file.close() }
      bytes = try file.read(AttachmentHeader.byteCount, at: 0)
    } catch {
      guard error.number == ErrorNumber.noEntry else {
        throw TidemarkError(error, while: "looking at an attachment")
      }
      return nil
    }
    do throws(FormatError) {
      return try AttachmentHeader(decoding: bytes)
    } catch { throw .damagedAttachment(name, error) }
  }

  /// Copies all attachments as they are to another store's directory, syncing each.
  /// - Parameter isWhole: whether to copy a file; asked with its header's hash.
  package func copy(
    to target: String, _ targetSystem: any FileSystem,
    where isWhole: (_ hash: [UInt8]) -> Bool = { _ in true }
  ) throws(TidemarkError) {
    let hashes = try hashes()
    guard !hashes.isEmpty else { return }
    let folder = target + "/" + StoreLayout.attachmentDirectory
    do throws(FileSystemError) {
      if try targetSystem.kind(folder) == nil { try targetSystem.createDirectory(folder) }
      for hash in hashes where isWhole(hash) {
        try copy(AttachmentID.text(hash), to: folder, targetSystem)
      }
      try targetSystem.syncDirectory(folder)
      try targetSystem.syncDirectory(target)
    } catch { throw TidemarkError(error, while: "copying attachments") }
  }

  private func copy(
    _ name: String, to folder: String, _ targetSystem: any FileSystem
  ) throws(FileSystemError) {
    let source: any File
    do { source = try fileSystem.open(directory + "/" + name, .read) } catch {
      // A sweep may have taken it meanwhile: then nothing of the copy names it.
      guard error.number == ErrorNumber.noEntry else { throw error }
      return
    }
    defer { source.close() }
    let file = try targetSystem.open(folder + "/" + name, .create)
    defer { file.close() }
    var offset = 0
    while true {
      let bytes = try source.read(1 << 20, at: offset)
      guard !bytes.isEmpty else { break }
      try file.writeFully(bytes.rawSpan, at: offset)
      offset += bytes.count
    }
    try file.sync()
  }
}
