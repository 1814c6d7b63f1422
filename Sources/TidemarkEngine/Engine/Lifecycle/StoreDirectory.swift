/// The directory of a store: whether it is one, its folders, its lock.
enum StoreDirectory {
  /// Makes sure that a store is at a path, or with `creates` that there is a directory for one.
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
      // An empty directory, or one in which a creation was interrupted before MANIFEST.
      if strangers.isEmpty, creates { return }
      if strangers.isEmpty, !names.isEmpty { throw cutOff(path) }
      throw TidemarkError(.notAStore, "\(path) is a directory and not a store; give another path")
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

  /// The names in one of the store's folders. A missing folder is made: a copy of a store may lack
  /// one that is empty, and the index can be made anew from the log.
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
  static func create(_ path: String, _ fileSystem: any FileSystem) throws(TidemarkError) {
    let parent = parent(of: path)
    do {
      try fileSystem.createDirectory(path)
    } catch {
      switch error.number {
      // Something exists by that name, and yet nothing where it leads.
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

  /// Whether neither the log's folder nor the index's holds a file.
  static func hasNoData(
    _ path: String, _ fileSystem: any FileSystem
  ) throws(TidemarkError) -> Bool {
    do {
      for name in [StoreLayout.logDirectory, StoreLayout.indexDirectory] {
        let folder = path + "/" + name
        if try fileSystem.kind(folder) != nil, try !fileSystem.list(folder).isEmpty { return false }
      }
      return true
    } catch { throw TidemarkError(error, while: "looking into the store") }
  }

  /// Whether a creation was interrupted within its first copy of MANIFEST: the second one is
  /// missing, and there is no segment, so that nothing was ever in the store.
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

  static func createFolders(_ path: String, _ fileSystem: any FileSystem) throws(TidemarkError) {
    do {
      for name in [
        StoreLayout.logDirectory, StoreLayout.indexDirectory, StoreLayout.quarantineDirectory,
      ] where try fileSystem.kind(path + "/" + name) == nil {
        try fileSystem.createDirectory(path + "/" + name)
      }
      try fileSystem.syncDirectory(path)
      // Also for a directory that was there: its name may never have been synced.
      try fileSystem.syncDirectory(parent(of: path))
    } catch { throw TidemarkError(error, while: "creating the store") }
  }

  /// Takes the store's lock, which its writer holds; the caller releases it.
  /// - Throws: `locked` when somebody else has it, in this process or another.
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
