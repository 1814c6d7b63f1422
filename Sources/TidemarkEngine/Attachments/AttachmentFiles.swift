/// The attachments of a store: files beside the log, named after the SHA-256 of their content.
///
/// A file is complete before the entry that names it is committed. A *sweep* removes the files that
/// no entry names; a *pin* keeps a file until a sweep has seen the entry. A *released* file is a
/// stub: a header alone, since the content is elsewhere, at a peer. The content of an upload is a
/// *part file* until it is complete. Lock order: `sweeping`, `state`, a part file's state.
package final class AttachmentFiles: Sendable {
  struct Pin {
    /// Commits and ``AttachmentHold``s that keep the file.
    var holders = 0
    /// An entry up to this sequence may name the file: sweeps that have seen fewer keep it.
    var through: UInt64 = 0
  }

  struct State {
    /// By hash of the content.
    var pins: [[UInt8]: Pin] = [:]
    /// Part files that are open.
    var parts: [PartName: PartReference] = [:]
    /// Whether unfinished files of an earlier opening have been removed.
    var isTidied = false
    /// Paths of files that are being written.
    var unfinished: Set<String> = []
    /// The key of all files; nil where nobody has looked, or files have others.
    var onlyKey: Encryption.KeyID?
    var isDirectoryThere = false
    /// Bytes of new files, and of cached data that was given up, since the last sweep.
    var changedBytes = 0
    /// Bytes of attachments of cached entries that came since the last sweep, of this opening or an
    /// earlier one; nil until they were counted.
    var cachedBytes: Int?
    /// Bytes of all files after the last sweep; nil before the first.
    var keptBytes: Int?
    /// Whether a compaction dropped entries since the last sweep: the last to name an attachment
    /// may be among them.
    var hasDrops = false
  }

  /// Begins the names of files that are not complete yet.
  static let unfinishedPrefix = "new-"

  let fileSystem: any FileSystem
  let store: String
  let keys: KeyRing
  let random: @Sendable (Int) -> [UInt8]
  let state = Lock(State())
  private let sweeping = Lock(())

  /// - Parameters:
  ///   - store: the store's directory.
  ///   - random: gives as many unpredictable bytes as it is asked for.
  package init(
    _ fileSystem: any FileSystem, store: String, keys: KeyRing,
    random: @escaping @Sendable (Int) -> [UInt8]
  ) {
    (self.fileSystem, self.store, self.keys, self.random) = (fileSystem, store, keys, random)
  }

  package var directory: String { store + "/" + StoreLayout.attachmentDirectory }

  func path(of id: AttachmentID) -> String { directory + "/" + id.fileName }

  /// A key for a new file of the store; nil where it is not encrypted.
  func newKey() throws(TidemarkError) -> NewFileKey? {
    try keys.newFileKey(try keys.current(), random: random)
  }

  func newNumber() -> UInt64 { random(8).reduce(0) { $0 << 8 | UInt64($1) } }

  // MARK: Files

  /// - Parameter makeRoom: called on a full disk with the bytes that are needed; says whether it
  ///   has made some room.
  package func create(
    makingRoom makeRoom: @escaping @Sendable (Int) -> Bool = { _ in false }
  ) throws(TidemarkError) -> AttachmentFileWriter {
    try prepareDirectory()
    return try AttachmentFileWriter(self, makingRoom: makeRoom)
  }

  /// A temporary path for a new file, until ``adopt(_:as:bytes:claiming:)`` or ``discard(_:)``.
  func newPath() -> String {
    let path = directory + "/" + Self.unfinishedPrefix + AttachmentID.text(random(8))
    state.withLock { _ = $0.unfinished.insert(path) }
    return path
  }

  /// Removes an unfinished file. If that fails, a later sweep does it.
  func discard(_ path: String) {
    state.withLock { _ = $0.unfinished.remove(path) }
    try? fileSystem.remove(path)
  }

  func prepareDirectory() throws(TidemarkError) {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      do throws(FileSystemError) {
        if !state.isDirectoryThere {
          if try fileSystem.kind(directory) == nil {
            try fileSystem.createDirectory(directory)
            try fileSystem.syncDirectory(store)
          }
          state.isDirectoryThere = true
        }
        if !state.isTidied { try tidy(&state) }
      } catch { throw TidemarkError(error, while: "making room for an attachment") }
    }
  }

  /// Removes unfinished files that nobody is writing.
  private func tidy(_ state: inout State) throws(FileSystemError) {
    for name in try fileSystem.names(in: directory) where name.hasPrefix(Self.unfinishedPrefix) {
      let path = directory + "/" + name
      if !state.unfinished.contains(path) { try fileSystem.remove(path) }
    }
    state.isTidied = true
  }

  /// Gives a file that is complete and synced its name. A file of that name is replaced: it has the
  /// same content, or is damaged or a stub.
  /// - Parameters:
  ///   - isMissing: for a stub of content that is not here: then a file that has the name by now
  ///     stays, and the caller syncs the directory.
  ///   - claim: runs under the lock before the rename; where it throws, nothing happens.
  /// - Returns: a hold on the attachment.
  func adopt(
    _ path: String, as id: AttachmentID, bytes: Int, ifMissing isMissing: Bool = false,
    claiming claim: () throws(TidemarkError) -> Void = {}
  ) throws(TidemarkError) -> AttachmentHold {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      try claim()
      do throws(FileSystemError) {
        if isMissing, try fileSystem.kind(self.path(of: id)) != nil {
          try fileSystem.remove(path)
        } else {
          try fileSystem.rename(path, to: self.path(of: id))
          if !isMissing { try fileSystem.syncDirectory(directory) }
        }
      } catch { throw TidemarkError(error, while: "naming an attachment") }
      state.unfinished.remove(path)
      state.pins[id.hash, default: Pin()].holders += 1
      state.changedBytes += bytes
    }
    return AttachmentHold(self, id)
  }

  /// - Returns: nil when there is no file of that content here, or a stub.
  package func open(_ id: AttachmentID) throws(TidemarkError) -> AttachmentFileReader? {
    guard id.length <= UInt64(Limits.attachmentBytes) else { return nil }
    let file: any File
    do { file = try fileSystem.open(path(of: id), .read) } catch {
      guard error.number == ErrorNumber.noEntry else {
        throw TidemarkError(error, while: "opening an attachment")
      }
      return nil
    }
    let reader = try AttachmentFileReader(file, of: id, keys)
    guard !reader.header.isReleased else { return nil }
    // In an encrypted store a file without a seal is from before encryption was switched on, or was
    // put there by somebody without the key: only the content's hash tells.
    if reader.header.seal == nil, try keys.current() != nil { try reader.verify() }
    return reader
  }

  /// Whether an attachment's file is here, whole or as a stub.
  package func contains(_ id: AttachmentID) throws(TidemarkError) -> Bool {
    do { return try fileSystem.kind(path(of: id)) == .file } catch {
      throw TidemarkError(error, while: "looking for an attachment")
    }
  }

  /// The hashes that files are named after, in order; of a store without any, none.
  package func hashes() throws(TidemarkError) -> [[UInt8]] {
    do throws(FileSystemError) {
      return try fileSystem.names(in: directory).compactMap { AttachmentID.hash(ofFile: $0) }
    } catch { throw TidemarkError(error, while: "listing attachments") }
  }

  /// The length of a file; nil where there is none.
  package func fileBytes(_ hash: [UInt8]) throws(TidemarkError) -> Int? {
    let path = directory + "/" + AttachmentID.text(hash)
    do {
      return try fileSystem.reading(path) { (file) throws(FileSystemError) in try file.length() }
    } catch { throw TidemarkError(error, while: "looking at an attachment") }
  }

  // MARK: Pins

  /// Holds on to an attachment until ``release(_:through:)``.
  /// - Returns: whether its file is here, whole or as a stub; it is pinned in either case.
  package func hold(_ id: AttachmentID) throws(TidemarkError) -> Bool {
    // The pin comes first, so that a sweep does not take what was just found.
    state.withLock { $0.pins[id.hash, default: Pin()].holders += 1 }
    do throws(TidemarkError) { return try contains(id) } catch {
      release(id)
      throw error
    }
  }

  /// A hold on an attachment whose file is here; nil where it is not.
  package func held(_ id: AttachmentID) throws(TidemarkError) -> AttachmentHold? {
    guard try hold(id) else {
      release(id)
      return nil
    }
    return AttachmentHold(self, id)
  }

  /// Ends a hold. The pin stays until a sweep has seen the log up to `through`.
  /// - Parameter through: the last entry that was committed under the hold and may name the file.
  package func release(_ id: AttachmentID, through: UInt64 = 0) {
    state.withLock { state in
      state.pins[id.hash]?.holders -= 1
      if let pin = state.pins[id.hash] { state.pins[id.hash]?.through = max(pin.through, through) }
    }
  }

  // MARK: Sweeps

  /// Counts cached data that was given up: attachments that it named may go.
  package func noteGivenUp(_ bytes: Int) {
    state.withLock { state in
      // A store without attachments has nothing to sweep.
      guard state.keptBytes != 0 || state.changedBytes > 0 else { return }
      let (sum, overflow) = state.changedBytes.addingReportingOverflow(bytes)
      state.changedBytes = overflow ? .max : sum
    }
  }

  /// Counts the attachments of cached entries that were committed.
  /// - Parameters:
  ///   - bytes: of their files, which are in the directory already.
  ///   - lastKept: the bytes that the last sweep of an earlier opening has kept; asked once.
  func noteCached(_ bytes: Int, lastKept: () -> Int?) throws(TidemarkError) {
    if state.withLock({ $0.cachedBytes == nil }) {
      let lastKept = lastKept() ?? 0
      var there = 0
      for hash in try hashes() { there += try fileBytes(hash) ?? 0 }
      let came = max(0, there - lastKept - bytes)
      state.withLock { state in
        state.cachedBytes = came
        state.keptBytes = state.keptBytes ?? lastKept
      }
    }
    state.withLock { $0.cachedBytes = ($0.cachedBytes ?? 0) + bytes }
  }

  /// Whether caches have brought so much since the last sweep that the next one is due.
  package var isCacheSweepDue: Bool {
    state.withLock { state in
      state.cachedBytes ?? 0 >= max(Limits.cachedBytesBeforeSweep, (state.keptBytes ?? 0) / 8)
    }
  }

  /// Whether so much has changed that a sweep pays: what it costs is a share of what came.
  package var isSweepDue: Bool {
    isCacheSweepDue
      || state.withLock { state in
        state.hasDrops
          || state.changedBytes
            >= max(Limits.attachmentBytesBeforeSweep, (state.keptBytes ?? 0) / 2)
      }
  }

  /// Says that a compaction has dropped entries, which calls for a sweep.
  func noteDrops() { state.withLock { $0.hasDrops = true } }

  /// Bytes that were there after the last sweep; nil before the first.
  var keptBytes: Int? { state.withLock { $0.keptBytes } }

  /// How many files a sweep has removed, and their bytes.
  package typealias SweepReport = (removed: Int, removedBytes: Int)

  /// The attachments that entries name, and the last entry that was looked at.
  typealias InUse = (hashes: Set<[UInt8]>, through: UInt64)

  /// Removes the files that no entry names. One sweep at a time: each forgets pins up to the
  /// sequence that it has seen.
  /// - Parameter inUse: reads from the log which files are named; nil keeps all.
  func sweep(
    _ inUse: () throws(TidemarkError) -> InUse?
  ) throws(TidemarkError) -> SweepReport {
    try sweeping.withLock { (_: inout Void) throws(TidemarkError) in
      // Cleared before the log is read: what is dropped from here on calls for another sweep.
      let hadDrops = state.withLock { state in
        defer { state.hasDrops = false }
        return state.hasDrops
      }
      do throws(TidemarkError) { return try sweepInTurn(inUse) } catch {
        if hadDrops { noteDrops() }
        throw error
      }
    }
  }

  private func sweepInTurn(
    _ inUse: () throws(TidemarkError) -> InUse?
  ) throws(TidemarkError) -> SweepReport {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      do throws(FileSystemError) { try tidy(&state) } catch {
        throw TidemarkError(error, while: "removing attachments that were not finished")
      }
    }
    // Listed before the log is read: files that come later are not looked at.
    let hashes = try hashes()
    var report: SweepReport = (removed: 0, removedBytes: 0)
    guard !hashes.isEmpty else {
      noteSwept(keeping: 0)
      return report
    }
    guard let (needed, through) = try inUse() else { return report }
    var keptBytes = 0
    for hash in hashes {
      let bytes = try fileBytes(hash) ?? 0
      let isGone = try state.withLock { (state: inout State) throws(TidemarkError) in
        if needed.contains(hash) { return false }
        // An entry behind `through`, which was not looked at, may name a pinned file.
        if let pin = state.pins[hash], pin.holders > 0 || pin.through > through { return false }
        do throws(FileSystemError) {
          try fileSystem.remove(directory + "/" + AttachmentID.text(hash))
        } catch { throw TidemarkError(error, while: "removing an attachment that nothing names") }
        return true
      }
      if isGone {
        report.removed += 1
        report.removedBytes += bytes
      } else {
        keptBytes += bytes
      }
    }
    state.withLock { state in
      state.pins = state.pins.filter { $0.value.holders > 0 || $0.value.through > through }
    }
    noteSwept(keeping: keptBytes)
    return report
  }

  private func noteSwept(keeping bytes: Int) {
    state.withLock { ($0.changedBytes, $0.cachedBytes, $0.keptBytes) = (0, 0, bytes) }
  }
}

/// Keeps an attachment's file from being swept for as long as it lives.
package final class AttachmentHold: Sendable {
  package let id: AttachmentID
  private let files: AttachmentFiles
  init(_ files: AttachmentFiles, _ id: AttachmentID) { (self.files, self.id) = (files, id) }

  deinit { files.release(id) }
}

extension TidemarkError {
  static func damagedAttachment(
    _ name: String, _ error: FormatError, offset: Int = 0
  ) -> TidemarkError {
    TidemarkError(
      .damaged, "an attachment is damaged: \(error.reason)",
      file: StoreLayout.attachmentDirectory + "/" + name, offset: offset, cause: error)
  }

  /// The error of a step that failed.
  /// - Parameter thing: what was being written.
  init(_ error: any Error, writing thing: String) {
    if let error = error as? FormatError {
      self.init(.inputOutput, error.reason, cause: error)
    } else {
      self.init(wrapping: error, while: "writing \(thing)")
    }
  }
}
