/// The directory of a new store while a repair fills it (backups use `prepare` alone). It becomes a
/// store once MANIFEST is in it, which `finish` writes last. The target holds the directory's lock
/// from `init` until `finish` has succeeded, or until `discard` after any error.
struct StoreTarget {
  let path: String
  private let environment: EngineEnvironment
  private let lock: any FileLock
  /// Whether `init` made the directory, so that `discard` removes it as well.
  private let isNew: Bool

  /// Makes the directory, or takes an empty one, locks it and makes its folders.
  /// - Throws: `storeExists` when anything else is at the path.
  init(creating path: String, environment: EngineEnvironment) throws(TidemarkError) {
    self.path = path
    self.environment = environment
    let fileSystem = environment.fileSystem
    isNew = try Self.prepare(
      path, fileSystem, while: "creating the store",
      isEmpty: "the new store's path is empty; give a directory",
      isTaken: "\(path) exists and is not an empty directory; give another path")
    lock = try StoreDirectory.lock(path, environment)
    do throws(TidemarkError) { try StoreDirectory.createFolders(path, fileSystem) } catch {
      lock.release()
      throw error
    }
  }

  /// Makes sure that a new store can be put at a path: there is nothing, or an empty directory.
  /// - Parameters:
  ///   - isEmpty: the message when the path is empty.
  ///   - isTaken: the message when something else is there.
  /// - Returns: whether this call made the directory.
  static func prepare(
    _ path: String, _ fileSystem: any FileSystem, while task: String, isEmpty: String,
    isTaken: String
  ) throws(TidemarkError) -> Bool {
    guard !path.isEmpty else { throw TidemarkError(.invalidArgument, isEmpty) }
    do {
      switch try fileSystem.kind(path) {
      case nil:
        try StoreDirectory.create(path, fileSystem)
        return true
      case .directory where try fileSystem.list(path).isEmpty: return false
      default: throw TidemarkError(.storeExists, isTaken)
      }
    } catch { throw TidemarkError(wrapping: error, while: task) }
  }

  /// Makes the names of all files durable, then writes MANIFEST, which turns the directory into a
  /// store: MANIFEST must never list a file that a power cut can take away.
  func finish(_ manifest: Manifest) throws(TidemarkError) {
    let fileSystem = environment.fileSystem
    var manifest = manifest
    manifest.isClosedCleanly = true
    do {
      for folder in [StoreLayout.logDirectory, StoreLayout.indexDirectory] {
        try fileSystem.syncDirectory(path + "/" + folder)
      }
      manifest.bootID = try environment.bootIdentifier()
      try ManifestStore(fileSystem, storePath: path).update(&manifest)
      try fileSystem.syncDirectory(path)
    } catch { throw TidemarkError(wrapping: error, while: "creating the store") }
    lock.release()
  }

  /// Releases the lock and removes what was written. Errors are ignored: the caller throws the one
  /// that made it give up, and files that stay are no store without MANIFEST.
  func discard() {
    let fileSystem = environment.fileSystem
    lock.release()
    for folder in [
      StoreLayout.logDirectory, StoreLayout.indexDirectory, StoreLayout.quarantineDirectory,
      StoreLayout.attachmentDirectory,
    ] {
      for name in (try? fileSystem.list(path + "/" + folder)) ?? [] {
        try? fileSystem.remove(path + "/" + folder + "/" + name)
      }
      try? fileSystem.remove(path + "/" + folder)
    }
    for name in StoreLayout.manifests + [StoreLayout.lock] {
      try? fileSystem.remove(path + "/" + name)
    }
    if isNew { try? fileSystem.remove(path) }
  }
}
