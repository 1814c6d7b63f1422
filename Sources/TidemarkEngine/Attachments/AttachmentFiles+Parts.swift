extension AttachmentFiles {
  /// One of a content that comes in parts, for as long as somebody has it.
  struct PartReference {
    weak var part: AttachmentPartFile?
  }

  /// The name of a content that comes in parts.
  package struct PartName: Sendable, Hashable {
    /// The content that it is to become: with another length it is another one.
    package var id: AttachmentID
    /// For whom it comes: what one has sent is not mixed with what another has. 1 to 32 bytes.
    package var owner: [UInt8]

    package init(id: AttachmentID, owner: [UInt8]) {
      self.id = id
      self.owner = owner
    }

    static let prefix = "part-"

    var fileName: String {
      "\(Self.prefix)\(id.fileName)-\(id.length)-\(AttachmentID.text(owner))"
    }

    init?(fileName: String) {
      let words = fileName.split(separator: "-", omittingEmptySubsequences: false)
      guard words.count == 4, let id = AttachmentID(text: "sha256:\(words[1]):\(words[2])"),
        let owner = [UInt8](hexDigits: Array(words[3].utf8)), (1...32).contains(owner.count)
      else { return nil }
      self.init(id: id, owner: owner)
      // A file whose name is another spelling of the same parts is none of ours.
      guard self.fileName == fileName else { return nil }
    }
  }

  /// The content that comes in parts under a name.
  /// - Parameters:
  ///   - id: what it is to become.
  ///   - owner: 1 to 32 bytes.
  ///   - now: milliseconds since 1970, for content that begins to come; nil begins none.
  /// - Returns: nil where nothing has come and none is begun.
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
        if try fileSystem.kind(path) == .file {
          found = try resumed(id, path, begins: now != nil)
        }
      } catch { throw TidemarkError(error, while: "looking for a part of an attachment") }
      if found == nil, let now {
        found = try AttachmentPartFile(self, beginning: id, path: path, now: now)
      }
      if let found { state.parts[name] = PartReference(part: found) }
      return found
    }
  }

  /// - Parameter begins: whether a file that cannot be read gives way to a new one.
  /// - Returns: nil for a file that is of no use, or whose key is gone: it begins anew.
  private func resumed(
    _ id: AttachmentID, _ path: String, begins: Bool
  ) throws(FileSystemError) -> AttachmentPartFile? {
    do throws(TidemarkError) { return try AttachmentPartFile(self, resuming: id, path: path) } catch
    {
      if let failure = error.cause as? FileSystemError, !begins || Self.passes(failure) {
        throw failure
      }
      try fileSystem.remove(path)
      return nil
    }
  }

  /// Whether a call failed for lack of file handles, or since the store was let go of, and may
  /// succeed later.
  static func passes(_ failure: any Error) -> Bool {
    guard let failure = failure as? FileSystemError else { return false }
    return [
      ErrorNumber.suspended, ErrorNumber.badDescriptor, ErrorNumber.tooManyOpenFiles,
      ErrorNumber.tooManyOpenFilesInSystem,
    ].contains(failure.number)
  }

  /// The contents that have begun to come. Files of no use go; those that cannot be read stay where
  /// they are: they are nobody's until their sender begins anew.
  /// - Parameter passOver: gets the errors of those that cannot be read.
  package func parts(
    passingOver passOver: (TidemarkError) -> Void = { _ in }
  ) throws(TidemarkError) -> [(name: PartName, part: AttachmentPartFile)] {
    var files: [String] = []
    do throws(FileSystemError) {
      guard try fileSystem.kind(directory) == .directory else { return [] }
      files = try fileSystem.list(directory).filter { $0.hasPrefix(PartName.prefix) }
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

  /// How many bytes files may still take; nil where nobody can tell.
  package var freeBytes: Int? { fileSystem.freeBytes(store) }

  // MARK: Content that is elsewhere

  /// Leaves a note for every attachment that is not here: an entry is about to name it, whose
  /// content a peer has.
  /// - Returns: keep the notes and what is there until the entry does.
  package func noteElsewhere(_ ids: [AttachmentID]) throws(TidemarkError) -> [AttachmentHold] {
    var holds: [AttachmentHold] = []
    var hasNew = false
    for id in ids {
      if let hold = try held(id) {
        holds.append(hold)
        continue
      }
      try prepareDirectory()
      let path = try writeNote(id)
      holds.append(try adoptNote(path, id))
      hasNew = true
    }
    guard hasNew else { return holds }
    do throws(FileSystemError) { try fileSystem.syncDirectory(directory) } catch {
      throw TidemarkError(error, while: "naming attachments")
    }
    return holds
  }

  /// Gives a note its name, unless the content itself has come meanwhile.
  private func adoptNote(_ path: String, _ id: AttachmentID) throws(TidemarkError)
    -> AttachmentHold
  {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      do throws(FileSystemError) {
        if try fileSystem.kind(self.path(of: id)) == nil {
          try fileSystem.rename(path, to: self.path(of: id))
        } else {
          try fileSystem.remove(path)
        }
      } catch { throw TidemarkError(error, while: "naming an attachment") }
      state.unfinished.remove(path)
      state.pins[id.hash, default: Pin()].holders += 1
    }
    return AttachmentHold(self, id)
  }
}
