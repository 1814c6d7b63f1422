public import TidemarkEngine

extension Store {
  /// Opens the store in a directory.
  /// - Parameters:
  ///   - path: the directory, by convention `NAME.tidemark`.
  ///   - configuration: how.
  /// - Throws: `storeMissing`, `notAStore`, `formatTooNew`, `locked` (by whom), `damaged`
  ///   (where), `permissionDenied` and the like; `keyMissing`, `wrongKey` and `notEncrypted`
  ///   when keys and store do not go together.
  public static func open(
    at path: String, configuration: Configuration = Configuration()
  ) async throws(TidemarkError) -> Store {
    try await open(at: .directory(path), configuration: configuration)
  }

  /// Opens a store in a directory or in memory.
  public static func open(
    at location: Location, configuration: Configuration = Configuration()
  ) async throws(TidemarkError) -> Store {
    try await onOwnThread("tidemark-open", if: configuration.usesThreads) {
      () throws(TidemarkError) in
      try openBlocking(at: location, configuration: configuration)
    }
  }

  /// Opens the store in a directory; blocks the thread that calls it.
  public static func openBlocking(
    at path: String, configuration: Configuration = Configuration()
  ) throws(TidemarkError) -> Store {
    try openBlocking(at: .directory(path), configuration: configuration)
  }

  /// Opens a store in a directory or in memory; blocks the thread that calls it.
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

  /// A store with the participants of all modules.
  convenience init(_ engine: Engine, _ configuration: Configuration) {
    let threads = configuration.usesThreads && configuration.canWrite
    self.init(
      engine, configuration, caches: CacheRegistry(engine, configuration),
      [IndexRegistry(engine, usesThreads: threads), RunningProjections()])
  }
}
