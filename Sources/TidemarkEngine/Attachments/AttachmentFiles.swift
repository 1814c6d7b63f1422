/// The attachments of a store: files beside the log, named after their content.
///
/// A file is there before the entry that names it is committed, and goes only when no entry does
/// so any more, which a sweep finds out. Between the two a pin keeps it.
package final class AttachmentFiles: Sendable {
  /// Keeps a file while it is being committed, and until a sweep has seen the entries that name it.
  struct Pin {
    /// Hands and commits that hold it.
    var holders = 0
    /// The last entry that names it, as far as is known.
    var through: UInt64 = 0
  }

  struct State {
    var pins: [[UInt8]: Pin] = [:]
    /// Contents that come in parts, as far as somebody has them.
    var parts: [PartName: PartReference] = [:]
    /// Whether what an earlier opening left half written has been removed.
    var isTidied = false
    /// Files that are being written.
    var unfinished: Set<String> = []
    /// The key that all files have, as far as that was looked at.
    var onlyKey: Encryption.KeyID?
    var isDirectoryThere = false
    /// Bytes that came, and of cached data that was given up, since the last sweep.
    var changedBytes = 0
    /// Bytes that cached entries have brought since the last sweep, of this opening or an earlier
    /// one; nil until that is known.
    var cachedBytes: Int?
    /// Bytes that were there after the last sweep; nil before the first.
    var keptBytes: Int?
    /// Whether entries went from the log since the last sweep: the last to name an attachment may
    /// be among them.
    var hasDrops = false
  }

  /// Files that are not whole yet begin so.
  static let unfinished = "new-"

  let fileSystem: any FileSystem
  let store: String
  let keys: KeyRing
  let random: @Sendable (Int) -> [UInt8]
  let state = Lock(State())
  /// Held while a sweep goes on.
  private let sweeping = Lock(())

  /// - Parameters:
  ///   - store: the store's directory.
  ///   - random: gives as many unpredictable bytes as it is asked for.
  package init(
    _ fileSystem: any FileSystem, store: String, keys: KeyRing,
    random: @escaping @Sendable (Int) -> [UInt8]
  ) {
    self.fileSystem = fileSystem
    self.store = store
    self.keys = keys
    self.random = random
  }

  package var directory: String { store + "/" + StoreLayout.attachmentDirectory }

  func path(of id: AttachmentID) -> String { directory + "/" + id.fileName }

  /// A key for a new file of the store; nil where it is not encrypted.
  func newKey() throws(TidemarkError) -> NewFileKey? {
    try keys.newFileKey(try keys.current(), random: random)
  }

  func newNumber() -> UInt64 { random(8).reduce(0) { $0 << 8 | UInt64($1) } }

  // MARK: Files

  /// Begins a new attachment.
  /// - Parameter makeRoom: called on a full disk with the bytes that are needed; says whether it
  ///   has made some room.
  package func create(
    makingRoom makeRoom: @escaping @Sendable (Int) -> Bool = { _ in false }
  ) throws(TidemarkError) -> AttachmentFileWriter {
    try prepareDirectory()
    return try AttachmentFileWriter(self, makingRoom: makeRoom)
  }

  /// A name for a file that is about to be written, until it is adopted or discarded.
  func newPath() -> String {
    let path = directory + "/" + Self.unfinished + AttachmentID.text(random(8))
    state.withLock { _ = $0.unfinished.insert(path) }
    return path
  }

  /// Removes a file that was not finished. If that fails, a later sweep does it.
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

  /// Removes what is half written, but for what is being written.
  private func tidy(_ state: inout State) throws(FileSystemError) {
    guard try fileSystem.kind(directory) == .directory else { return }
    for name in try fileSystem.list(directory) where name.hasPrefix(Self.unfinished) {
      let path = directory + "/" + name
      if !state.unfinished.contains(path) { try fileSystem.remove(path) }
    }
    state.isTidied = true
  }

  /// Gives a file that is whole and synced its name. One that is there already is replaced: it
  /// has the same content, unless it is damaged or was released.
  /// - Returns: a hold on the attachment.
  func adopt(
    _ path: String, as id: AttachmentID, bytes: Int,
    claiming claim: () throws(TidemarkError) -> Void = {}
  ) throws(TidemarkError) -> AttachmentHold {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      try claim()
      do throws(FileSystemError) {
        try fileSystem.rename(path, to: self.path(of: id))
        try fileSystem.syncDirectory(directory)
      } catch { throw TidemarkError(error, while: "naming an attachment") }
      state.unfinished.remove(path)
      state.pins[id.hash, default: Pin()].holders += 1
      state.changedBytes += bytes
    }
    return AttachmentHold(self, id)
  }

  /// Opens an attachment.
  /// - Returns: nil when there is none of that content here, or when it was released.
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
    // A file without a seal in an encrypted store is from before its change of keys: or somebody
    // else's, which only the content's hash tells.
    if reader.header.seal == nil, try keys.current() != nil { try reader.verify() }
    return reader
  }

  /// Whether an attachment's file is here, whole or released.
  package func contains(_ id: AttachmentID) throws(TidemarkError) -> Bool {
    do { return try fileSystem.kind(path(of: id)) == .file } catch {
      throw TidemarkError(error, while: "looking for an attachment")
    }
  }

  /// The hashes that files are named after, in order; of a store without any, none.
  package func hashes() throws(TidemarkError) -> [[UInt8]] {
    do throws(FileSystemError) {
      guard try fileSystem.kind(directory) == .directory else { return [] }
      return try fileSystem.list(directory).compactMap { AttachmentID.hash(ofFile: $0) }
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
  /// - Returns: whether its file is here, whole or released.
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

  /// Lets go of an attachment.
  /// - Parameter through: the last entry that was committed meanwhile, which may name it.
  package func release(_ id: AttachmentID, through: UInt64 = 0) {
    state.withLock { state in
      state.pins[id.hash]?.holders -= 1
      if let pin = state.pins[id.hash] {
        state.pins[id.hash]?.through = max(pin.through, through)
      }
    }
  }

  // MARK: Sweeps

  /// Takes note that cached data of so many bytes was given up.
  package func noteGivenUp(_ bytes: Int) {
    state.withLock { state in
      // A store without attachments has nothing to sweep.
      guard state.keptBytes != 0 || state.changedBytes > 0 else { return }
      let (sum, overflow) = state.changedBytes.addingReportingOverflow(bytes)
      state.changedBytes = overflow ? .max : sum
    }
  }

  /// Takes note that cached entries were committed that name content of so many bytes.
  /// - Parameter lastKept: the bytes that were there after the last sweep of an earlier opening;
  ///   asked once.
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

  /// Whether caches have brought so much that what they gave up since is to go.
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

  /// Takes note that a compaction has dropped entries.
  func noteDrops() { state.withLock { $0.hasDrops = true } }

  /// Bytes that were there after the last sweep; nil before the first.
  var keptBytes: Int? { state.withLock { $0.keptBytes } }

  /// The outcome of a sweep.
  package struct SweepReport: Sendable, Hashable {
    package var removed = 0
    package var removedBytes = 0
    package var kept = 0
    package var keptBytes = 0
  }

  /// The attachments that entries name.
  package struct InUse: Sendable {
    package var hashes: Set<[UInt8]>
    /// The last entry that was looked at.
    package var through: UInt64
  }

  /// Removes the files that no entry names.
  /// - Parameter inUse: finds out which ones are named; nil for all. One sweep comes after the
  ///   other, since each forgets pins that it has seen the entries of.
  package func sweep(
    _ inUse: () throws(TidemarkError) -> InUse?
  ) throws(TidemarkError) -> SweepReport {
    try sweeping.withLock { (_: inout Void) throws(TidemarkError) in
      let hadDrops = state.withLock { state in
        defer { state.hasDrops = false }
        return state.hasDrops
      }
      do throws(TidemarkError) { return try sweepAlone(inUse) } catch {
        if hadDrops { noteDrops() }
        throw error
      }
    }
  }

  private func sweepAlone(
    _ inUse: () throws(TidemarkError) -> InUse?
  ) throws(TidemarkError) -> SweepReport {
    try state.withLock { (state: inout State) throws(TidemarkError) in
      do throws(FileSystemError) { try tidy(&state) } catch {
        throw TidemarkError(error, while: "removing attachments that were not finished")
      }
    }
    let hashes = try hashes()
    guard !hashes.isEmpty else {
      noteSwept(keeping: 0)
      return SweepReport()
    }
    guard let inUse = try inUse() else { return SweepReport() }
    return try sweep(hashes, inUse.hashes, through: inUse.through)
  }

  private func sweep(
    _ hashes: [[UInt8]], _ needed: Set<[UInt8]>, through: UInt64
  ) throws(TidemarkError) -> SweepReport {
    var report = SweepReport()
    for hash in hashes {
      let bytes = try fileBytes(hash) ?? 0
      let isGone = try state.withLock { (state: inout State) throws(TidemarkError) in
        if needed.contains(hash) { return false }
        if let pin = state.pins[hash], pin.holders > 0 || pin.through > through { return false }
        do throws(FileSystemError) {
          try fileSystem.remove(directory + "/" + AttachmentID.text(hash))
        } catch {
          throw TidemarkError(error, while: "removing an attachment that nothing names")
        }
        return true
      }
      if isGone {
        report.removed += 1
        report.removedBytes += bytes
      } else {
        report.kept += 1
        report.keptBytes += bytes
      }
    }
    state.withLock { state in
      state.pins = state.pins.filter { $0.value.holders > 0 || $0.value.through > through }
    }
    noteSwept(keeping: report.keptBytes)
    return report
  }

  private func noteSwept(keeping bytes: Int) {
    state.withLock { state in
      state.changedBytes = 0
      state.cachedBytes = 0
      state.keptBytes = bytes
    }
  }
}

/// Keeps an attachment's file from being swept for as long as it lives.
package final class AttachmentHold: Sendable {
  package let id: AttachmentID
  private let files: AttachmentFiles
  init(_ files: AttachmentFiles, _ id: AttachmentID) {
    self.files = files
    self.id = id
  }

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
    self =
      switch error {
      case let error as FileSystemError: TidemarkError(error, while: "writing \(thing)")
      case let error as TidemarkError: error
      case let error as FormatError: TidemarkError(.inputOutput, error.reason, cause: error)
      default: TidemarkError(.inputOutput, "\(thing) cannot be written", cause: error)
      }
  }
}
