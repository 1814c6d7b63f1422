/// The directory of a store: whether it is one, its folders, its lock.
enum StoreDirectory {
  /// Tells a store, or a place for one, from everything else.
  static func check(
    _ path: String, _ fileSystem: any FileSystem, creates: Bool
  ) throws(TidemarkError) {
    guard !path.isEmpty else {
      throw TidemarkError(.invalidArgument, "the store's path is empty; give a directory")
    }
    let kind: FileKind?
    do { kind = try fileSystem.kind(path) } catch {
      throw TidemarkError(error, while: "looking for the store")
    }
    switch kind {
    case nil:
      guard creates else {
        throw TidemarkError(.storeMissing, "there is no store at \(path); check the path")
      }
      try create(path, fileSystem)
    case .directory:
      let names: [String]
      let hasLog: Bool
      do throws(FileSystemError) {
        names = try fileSystem.list(path)
        if names.contains(where: { StoreLayout.manifests.contains($0) }) { return }
        let log = path + "/" + StoreLayout.logDirectory
        hasLog =
          names.contains(StoreLayout.logDirectory) ? try !fileSystem.list(log).isEmpty : false
      } catch { throw TidemarkError(error, while: "looking into the store") }
      let strangers = names.filter { !StoreLayout.known.contains($0) }
      if strangers.isEmpty, hasLog {
        throw TidemarkError(
          .damaged,
          "both copies of MANIFEST are missing; repair what is left into a new store, or make a "
            + "copy again that was cut off",
          file: StoreLayout.manifests[0], offset: 0)
      }
      // Nothing but the beginnings of a creation that was interrupted.
      if strangers.isEmpty, creates { return }
      if strangers.isEmpty, !names.isEmpty { throw cutOff(path) }
      throw TidemarkError(
        .notAStore, "\(path) is a directory and not a store; give another path")
    default:
      throw TidemarkError(.notAStore, "\(path) is not a directory, so no store; check the path")
    }
  }

  /// The error for a directory with files of a store, but neither MANIFEST nor segments.
  static func cutOff(_ path: String) -> TidemarkError {
    TidemarkError(
      .notAStore,
      "there is nothing in the store at \(path): its creation was cut off, or its log was removed; "
        + "restore a backup, create it again, or remove the directory")
  }

  /// The names in one of the store's folders. One that is missing is made: the log without any
  /// segment, and the index, which is made anew from the log.
  static func names(
    in folder: String, of path: String, _ fileSystem: any FileSystem
  ) throws(FileSystemError) -> [String] {
    do { return try fileSystem.list(path + "/" + folder) } catch {
      guard error.number == ErrorNumber.noEntry else { throw error }
    }
    try fileSystem.createDirectory(path + "/" + folder)
    try fileSystem.syncDirectory(path)
    return []
  }

  /// Makes the directory of a new store, where nothing stands.
  static func create(
    _ path: String, _ fileSystem: any FileSystem
  ) throws(TidemarkError) {
    let parent = parent(of: path)
    do {
      try fileSystem.createDirectory(path)
    } catch {
      switch error.number {
      case ErrorNumber.exists where (try? fileSystem.kind(path)) == .some(nil):
        throw TidemarkError(
          .notAStore,
          "\(path) is a symbolic link that leads nowhere; remove it, or create the directory that "
            + "it names",
          cause: error)
      case ErrorNumber.noEntry, ErrorNumber.notADirectory:
        throw TidemarkError(
          .storeMissing,
          "there is no directory \(parent) to create the store in; create it, or check the path",
          cause: error)
      default: throw TidemarkError(error, while: "creating the store")
      }
    }
  }

  /// Whether neither log nor index holds a file.
  static func hasNoData(
    _ path: String, _ fileSystem: any FileSystem
  ) throws(TidemarkError) -> Bool {
    do {
      for name in [StoreLayout.logDirectory, StoreLayout.indexDirectory] {
        let folder = path + "/" + name
        if try fileSystem.kind(folder) != nil, try !fileSystem.list(folder).isEmpty {
          return false
        }
      }
      return true
    } catch { throw TidemarkError(error, while: "looking into the store") }
  }

  /// Whether this is what a creation leaves that was interrupted within its first copy of
  /// MANIFEST: the second one is missing, and there is no segment yet. Nothing was ever in it.
  static func isHalfCreated(
    _ path: String, _ fileSystem: any FileSystem
  ) throws(TidemarkError) -> Bool {
    do {
      guard try fileSystem.kind(path + "/" + StoreLayout.manifests[1]) == nil else { return false }
    } catch { throw TidemarkError(error, while: "looking into the store") }
    return try hasNoData(path, fileSystem)
  }

  static func parent(of path: String) -> String {
    var trimmed = path[...]
    while trimmed.count > 1, trimmed.last == "/" { trimmed.removeLast() }
    guard let slash = trimmed.lastIndex(of: "/") else { return "." }
    return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
  }

  static func createFolders(
    _ path: String, _ fileSystem: any FileSystem
  ) throws(TidemarkError) {
    do {
      for name in [
        StoreLayout.logDirectory, StoreLayout.indexDirectory, StoreLayout.quarantineDirectory,
      ] where try fileSystem.kind(path + "/" + name) == nil {
        try fileSystem.createDirectory(path + "/" + name)
      }
      try fileSystem.syncDirectory(path)
      // Also when the directory was there: who made it may have been stopped before this.
      try fileSystem.syncDirectory(parent(of: path))
    } catch { throw TidemarkError(error, while: "creating the store") }
  }

  static func lock(
    _ path: String, _ environment: EngineEnvironment
  ) throws(TidemarkError) -> any FileLock {
    let outcome: FileLockOutcome
    let owner = Array("pid \(ProcessIdentity.current)\n".utf8)
    do {
      outcome = try environment.fileSystem.lock(path + "/" + StoreLayout.lock, owner: owner)
    } catch { throw TidemarkError(error, while: "locking the store") }
    switch outcome {
    case .acquired(let lock): return lock
    case .heldByThisProcess:
      throw TidemarkError(
        .locked,
        "this process has the store open already; use what it was opened as, close that first, or "
          + "open read-only",
        file: StoreLayout.lock)
    case .held(let bytes):
      let text =
        String(decoding: bytes.prefix(64), as: UTF8.self)
        .split(separator: "\n").first.map(String.init) ?? "another process"
      throw TidemarkError(
        .locked, "the store is locked by \(text); end that process, or open read-only",
        file: StoreLayout.lock)
    }
  }
}
