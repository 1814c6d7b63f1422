extension AttachmentFiles {
  /// One of a content that comes in parts, for as long as somebody has it.
  struct PartReference {
    weak var part: AttachmentPartFile?
  }

  /// The name of a content that comes in parts.
  package struct PartName: Sendable, Hashable {
    /// The SHA-256 that it is to have.
    package var hash: [UInt8]
    /// For whom it comes: what one has sent is not mixed with what another has. 16 bytes.
    package var owner: [UInt8]

    package init(hash: [UInt8], owner: [UInt8]) {
      self.hash = hash
      self.owner = owner
    }

    static let prefix = "part-"

    var fileName: String {
      Self.prefix + AttachmentID.text(hash) + "-" + AttachmentID.text(owner)
    }

    init?(fileName: String) {
      let words = fileName.split(separator: "-", omittingEmptySubsequences: false)
      guard words.count == 3, words[0] + "-" == Self.prefix,
        let hash = AttachmentID.hash(ofFile: String(words[1])),
        let owner = AttachmentID.bytes(ofDigits: String(words[2])), owner.count == 16
      else { return nil }
      self.init(hash: hash, owner: owner)
    }
  }

  /// The content that comes in parts under a name.
  /// - Parameters:
  ///   - id: what it is to become.
  ///   - owner: 16 bytes.
  ///   - now: milliseconds since 1970, for content that begins to come; nil begins none.
  /// - Returns: nil where nothing has come and none is begun.
  package func part(
    of id: AttachmentID, for owner: [UInt8], beginning now: UInt64? = nil
  ) throws(TidemarkError) -> AttachmentPartFile? {
    try prepareDirectory()
    let name = PartName(hash: id.hash, owner: owner).fileName
    let path = directory + "/" + name
    return try state.withLock {
      (state: inout State) throws(TidemarkError) -> AttachmentPartFile? in
      if let part = state.parts[name]?.part {
        if part.id == id, !part.isOver { return part }
        // The hash with another length: its file is about to go.
        part.cancel()
      }
      state.parts = state.parts.filter { $0.value.part != nil }
      var found: AttachmentPartFile?
      do throws(FileSystemError) {
        if try fileSystem.kind(path) == .file { found = try resumed(id, path) }
      } catch { throw TidemarkError(error, while: "looking for a part of an attachment") }
      if found == nil, let now {
        found = try AttachmentPartFile(self, beginning: id, path: path, now: now)
      }
      if let found { state.parts[name] = PartReference(part: found) }
      return found
    }
  }

  /// - Returns: nil for a file that is of no use, or whose key is gone: it begins anew.
  private func resumed(
    _ id: AttachmentID, _ path: String
  ) throws(FileSystemError) -> AttachmentPartFile? {
    do throws(TidemarkError) { return try AttachmentPartFile(self, resuming: id, path: path) } catch
    {
      if let failure = error.cause as? FileSystemError { throw failure }
      try fileSystem.remove(path)
      return nil
    }
  }

  /// The contents that have begun to come, with what they are to become. Files of no use go.
  package func parts() throws(TidemarkError) -> [(name: PartName, part: AttachmentPartFile)] {
    var names: [PartName] = []
    do throws(FileSystemError) {
      guard try fileSystem.kind(directory) == .directory else { return [] }
      names = try fileSystem.list(directory).compactMap { PartName(fileName: $0) }
    } catch { throw TidemarkError(error, while: "listing parts of attachments") }
    var found: [(name: PartName, part: AttachmentPartFile)] = []
    for name in names {
      let path = directory + "/" + name.fileName
      do throws(TidemarkError) {
        guard let header = try header(ofFile: name.fileName),
          let part = try part(of: header.id, for: name.owner)
        else { continue }
        found.append((name, part))
      } catch {
        guard error.code == .damaged else { throw error }
        try? fileSystem.remove(path)
      }
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
