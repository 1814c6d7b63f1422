/// Part files, the content of uploads that come in parts, and stubs: files of a header alone, which
/// say that an attachment's content is elsewhere, at a peer.
extension AttachmentFiles {
  /// The open part file of a name: all who ask for it share one object, which alone writes.
  struct PartReference {
    weak var part: AttachmentPartFile?
  }

  /// The name of a part file.
  package struct PartName: Sendable, Hashable {
    /// The attachment that it is to become.
    package var id: AttachmentID
    /// Who uploads it: each owner has a part file of its own. 1 to 32 bytes.
    package var owner: [UInt8]

    package init(id: AttachmentID, owner: [UInt8]) { (self.id, self.owner) = (id, owner) }

    static let prefix = "part-"

    var fileName: String { "\(Self.prefix)\(id.fileName)-\(id.length)-\(AttachmentID.text(owner))" }

    init?(fileName: String) {
      let words = fileName.split(separator: "-", omittingEmptySubsequences: false)
      guard words.count == 4, let id = AttachmentID(text: "sha256:\(words[1]):\(words[2])"),
        let owner = [UInt8](hexDigits: Array(words[3].utf8)), (1...32).contains(owner.count)
      else { return nil }
      self.init(id: id, owner: owner)
      // Other spellings, as with capital hexadecimal digits, are no names that `fileName` gives.
      guard self.fileName == fileName else { return nil }
    }
  }

  /// Opens or begins the part file of an upload.
  /// - Parameters:
  ///   - id: the attachment that it is to become.
  ///   - owner: who uploads it, 1 to 32 bytes.
  ///   - now: milliseconds since 1970, for a file that is begun; nil begins none.
  /// - Returns: nil where there is no file and none is begun.
  package func part(
    of id: AttachmentID, for owner: [UInt8], beginning now: UInt64? = nil
  ) throws(TidemarkError) -> AttachmentPartFile? {
    try prepareDirectory()
    let name = PartName(id: id, owner: owner)
    let path = directory + "/" + name.fileName
    return try state.withLock {
      (state: inout State) throws(TidemarkError) -> AttachmentPartFile? in
      if let part = state.parts[name]?.part, !part.isOver { return part }
      state.parts = state.parts.filter { $0.value.part != nil }
      var found: AttachmentPartFile?
      do throws(FileSystemError) {
        if try fileSystem.kind(path) == .file { found = try resumed(id, path, begins: now != nil) }
      } catch { throw TidemarkError(error, while: "looking for a part of an attachment") }
      if found == nil, let now {
        found = try AttachmentPartFile(self, beginning: id, path: path, now: now)
      }
      if let found { state.parts[name] = PartReference(part: found) }
      return found
    }
  }

  /// Opens a part file that an earlier opening has left.
  /// - Parameter begins: whether a new file replaces one that the disk cannot read.
  /// - Returns: nil where the file was removed: it is damaged, or its key is not that of new files.
  private func resumed(
    _ id: AttachmentID, _ path: String, begins: Bool
  ) throws(FileSystemError) -> AttachmentPartFile? {
    do throws(TidemarkError) { return try AttachmentPartFile(self, resuming: id, path: path) } catch
    {
      if let failure = error.cause as? FileSystemError, !begins || Self.isTransient(failure) {
        throw failure
      }
      try fileSystem.remove(path)
      return nil
    }
  }

  /// Whether a call may succeed later: it lacked file handles, or the store is closed or suspended.
  static func isTransient(_ failure: any Error) -> Bool {
    guard let failure = failure as? FileSystemError else { return false }
    return [
      ErrorNumber.suspended, ErrorNumber.badDescriptor, ErrorNumber.tooManyOpenFiles,
      ErrorNumber.tooManyOpenFilesInSystem,
    ].contains(failure.number)
  }

  /// All part files. Damaged ones are removed; one that the disk cannot read is left out.
  /// - Parameter passOver: gets the errors of those that are left out.
  package func parts(
    passingOver passOver: (TidemarkError) -> Void = { _ in }
  ) throws(TidemarkError) -> [(name: PartName, part: AttachmentPartFile)] {
    let files: [String]
    do throws(FileSystemError) {
      files = try fileSystem.names(in: directory).filter { $0.hasPrefix(PartName.prefix) }
    } catch { throw TidemarkError(error, while: "listing parts of attachments") }
    var found: [(name: PartName, part: AttachmentPartFile)] = []
    for file in files {
      guard let name = PartName(fileName: file) else {
        // Partial uploads of earlier versions had other names; their senders begin anew.
        try? fileSystem.remove(directory + "/" + file)
        continue
      }
      do throws(TidemarkError) {
        if let part = try part(of: name.id, for: name.owner) { found.append((name, part)) }
      } catch { passOver(error) }
    }
    return found
  }

  /// Free bytes of the disk; nil where the system does not tell.
  package var freeBytes: Int? { fileSystem.freeBytes(store) }

  // MARK: Stubs

  /// Writes a stub for every attachment that is not here: an entry that names it is about to be
  /// committed, while a peer has the content.
  /// - Returns: holds on all of them, stub or content, to be kept until the entry is committed.
  package func noteElsewhere(_ ids: [AttachmentID]) throws(TidemarkError) -> [AttachmentHold] {
    var holds: [AttachmentHold] = []
    var hasNew = false
    for id in ids {
      if let hold = try held(id) {
        holds.append(hold)
        continue
      }
      try prepareDirectory()
      holds.append(try adopt(try writeStub(id), as: id, bytes: 0, ifMissing: true))
      hasNew = true
    }
    guard hasNew else { return holds }
    do throws(FileSystemError) { try fileSystem.syncDirectory(directory) } catch {
      throw TidemarkError(error, while: "naming attachments")
    }
    return holds
  }
}
