extension StoreDirectory {
  /// Deletes a store: all files that one may have, and its directory, unless other files stand
  /// there. It needs no key of an encrypted store. MANIFEST goes late and the lock last, so that a
  /// deletion that was interrupted can be repeated.
  /// - Throws: `storeMissing`; `notAStore`; `locked` while the store is open for writing.
  static func delete(
    _ path: String, _ environment: EngineEnvironment
  ) throws(TidemarkError) {
    let fileSystem = environment.fileSystem
    var names: [String] = []
    let kind: FileKind?
    do throws(FileSystemError) {
      kind = path.isEmpty ? nil : try fileSystem.kind(path)
      if kind == .directory { names = try fileSystem.list(path) }
    } catch { throw TidemarkError(error, while: "looking for the store") }
    if kind == nil {
      throw TidemarkError(.storeMissing, "there is no store at \(path); check the path")
    }
    let isStore = names.contains { StoreLayout.manifests.contains($0) }
    guard isStore || !names.isEmpty && names.allSatisfy(StoreLayout.known.contains) else {
      throw TidemarkError(
        .notAStore, "\(path) is no store; nothing was deleted")
    }
    let lock = try lock(path, environment)
    defer { lock.release() }
    let last = StoreLayout.manifests + [StoreLayout.lock]
    let first = StoreLayout.known.subtracting(last).sorted()
    do throws(FileSystemError) {
      for name in (first + last) where names.contains(name) || name == StoreLayout.lock {
        try removeTree(path + "/" + name, depth: 4, fileSystem)
      }
      // Files that belong to somebody else keep the directory.
      if try fileSystem.list(path).isEmpty {
        try fileSystem.remove(path)
        try fileSystem.syncDirectory(parent(of: path))
      } else {
        try fileSystem.syncDirectory(path)
      }
    } catch { throw TidemarkError(error, while: "deleting the store") }
  }

  /// Removes a file, or a directory with all that it has. Never follows a symbolic link: `remove`
  /// removes the link itself, and only what it refuses as a directory that is not empty is listed.
  private static func removeTree(
    _ path: String, depth: Int, _ fileSystem: any FileSystem
  ) throws(FileSystemError) {
    do { return try fileSystem.remove(path) } catch {
      guard depth > 0, error.number == ErrorNumber.directoryNotEmpty else { throw error }
    }
    for name in try fileSystem.list(path) {
      try removeTree(path + "/" + name, depth: depth - 1, fileSystem)
    }
    try fileSystem.remove(path)
  }
}
