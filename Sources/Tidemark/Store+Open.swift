public import TidemarkEngine

extension Store {
  /// Opens the store in a directory, and by default creates it when there is none.
  /// - Parameters:
  ///   - path: the directory, by convention `NAME.tidemark`.
  ///   - configuration: the settings of the store; the defaults suit an app.
  /// - Throws: `storeMissing`, `notAStore` or `formatTooNew`; `locked` with the process that has
  ///   the store open; `damaged` with the place; `permissionDenied` and the like. `keyMissing`,
  ///   `wrongKey` and `notEncrypted` when keys and store do not match.
  public static func open(
    at path: String, configuration: Configuration = Configuration()
  ) async throws(TidemarkError) -> Store {
    try await open(at: .directory(path), configuration: configuration)
  }

  /// Opens a store in a directory or in memory; see ``open(at:configuration:)``.
  /// - Parameters:
  ///   - location: a directory, or memory for data that is gone when the store is closed.
  ///   - configuration: the settings of the store; the defaults suit an app.
  public static func open(
    at location: Location, configuration: Configuration = Configuration()
  ) async throws(TidemarkError) -> Store {
    try await onOwnThread("tidemark-open", if: configuration.usesThreads) {
      () throws(TidemarkError) in
      try openBlocking(at: location, configuration: configuration)
    }
  }

  /// Opens the store in a directory; blocks the calling thread.
  /// - Parameters:
  ///   - path: the directory, by convention `NAME.tidemark`.
  ///   - configuration: the settings of the store; the defaults suit an app.
  /// - Throws: the same errors as `open`.
  public static func openBlocking(
    at path: String, configuration: Configuration = Configuration()
  ) throws(TidemarkError) -> Store {
    try openBlocking(at: .directory(path), configuration: configuration)
  }

  /// Opens a store in a directory or in memory; blocks the calling thread.
  /// - Parameters:
  ///   - location: a directory, or memory for data that is gone when the store is closed.
  ///   - configuration: the settings of the store; the defaults suit an app.
  /// - Throws: the same errors as `open`.
  public static func openBlocking(
    at location: Location, configuration: Configuration = Configuration()
  ) throws(TidemarkError) -> Store {
    var configuration = configuration
    let path: String
    switch location {
    case .directory(let directory): path = directory
    case .inMemory:
      path = "/memory"
      configuration.environment.fileSystem = MemoryFileSystem()
    }
    return Store(try configuration.openEngine(at: path), configuration)
  }

  /// Deletes the store in a directory, as when a user signs out or an account is removed.
  ///
  /// Close the store first. Files in the directory that are not the store's stay, and the directory
  /// with them. No key is needed for an encrypted store. A deletion that was interrupted can be
  /// repeated. The disk may hold the deleted bytes until it writes over them: encrypt a store
  /// whose data must be gone for good, and forget the key.
  /// - Parameter path: the directory that the store was opened at.
  /// - Throws: `storeMissing`; `notAStore` for a directory that is none, which stays as it is;
  ///   `locked` while somebody has the store open for writing; `permissionDenied` and the like.
  public static func delete(at path: String) async throws(TidemarkError) {
    try await onOwnThread("tidemark-delete") { () throws(TidemarkError) in
      try deleteBlocking(at: path)
    }
  }

  /// Deletes the store in a directory, as ``delete(at:)`` does, and blocks the calling thread.
  /// - Parameter path: the directory that the store was opened at. Close the store first.
  /// - Throws: `storeMissing`, `notAStore`, `locked`, `permissionDenied` and the like.
  public static func deleteBlocking(at path: String) throws(TidemarkError) {
    try Engine.delete(path)
  }

  /// A store with the participants of all modules.
  convenience init(_ engine: Engine, _ configuration: Configuration) {
    let threads = configuration.usesThreads && configuration.canWrite
    self.init(
      engine, configuration, caches: CacheRegistry(engine, configuration),
      [IndexRegistry(engine, usesThreads: threads), RunningProjections()])
  }
}
