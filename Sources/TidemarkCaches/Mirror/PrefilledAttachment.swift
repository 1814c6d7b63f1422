internal import TidemarkEngine

/// An attachment of prefilled data, with the place of its content.
struct PrefilledAttachment {
  enum Place {
    case store(Store)
    /// Nil where none was given.
    case directory(String?)
  }

  let id: AttachmentID
  let place: Place

  /// Writes the content to a store, unless it is there.
  /// - Throws: `coding` where there is no such content, `damaged` where it is another.
  func copy(to store: Store) throws(TidemarkError) -> StagedAttachment {
    if let present = try store.staged(AttachmentReference(id)) { return present }
    switch place {
    case .store(let source):
      guard let file = try source.engine.openAttachment(id) else { throw lack }
      return try write(to: store) { (offset) throws(TidemarkError) in
        try file.read(at: offset, count: AttachmentReader.chunkBytes)
      }
    case .directory(let directory):
      guard let directory else { throw lack }
      let file: any File
      do throws(FileSystemError) {
        file = try LocalFileSystem().open(directory + "/" + id.fileName, .read)
      } catch { throw error.number == ErrorNumber.noEntry ? lack : Self.unreadable(error) }
      defer { file.close() }
      return try write(to: store) { (offset) throws(TidemarkError) in
        do throws(FileSystemError) {
          return try file.read(AttachmentReader.chunkBytes, at: offset)
        } catch { throw Self.unreadable(error) }
      }
    }
  }

  private func write(
    to store: Store, _ read: (Int) throws(TidemarkError) -> [UInt8]
  ) throws(TidemarkError) -> StagedAttachment {
    let writer = try store.engine.newAttachment()
    var offset = 0
    while true {
      let bytes = try read(offset)
      guard !bytes.isEmpty else { break }
      try writer.write(bytes.rawSpan)
      offset += bytes.count
    }
    return StagedAttachment(hold: try writer.finish(expecting: id))
  }

  private var lack: TidemarkError {
    TidemarkError(
      .coding,
      "the prefilled data names the attachment \(id.fileName), of which the content is not there; "
        + "ship it, and say where it is")
  }

  private static func unreadable(_ error: FileSystemError) -> TidemarkError {
    TidemarkError(error, while: "reading an attachment of the prefilled data")
  }
}
