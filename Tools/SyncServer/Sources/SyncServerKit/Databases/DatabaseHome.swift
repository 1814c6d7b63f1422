internal import Tidemark
internal import TidemarkSyncServer

/// A number about where databases are kept; rows of one name stand together.
struct HomeMetric {
  var name: String
  var kind: String
  var help: String
  var labels: String
  var value: Int
}

/// Where the databases of a server are kept: a directory with stores, or tables of PostgreSQL. All
/// calls block.
protocol DatabaseHome: Sendable {
  /// Whether the databases can be used now, as `/ready` tells it.
  var isReady: Bool { get }
  /// The names of all databases, and how many there are.
  func names() -> [DatabaseName]
  func count() throws(TidemarkError) -> Int
  func has(_ name: DatabaseName) -> Bool
  /// - Parameter makes: whether the database is made; otherwise it has to be there.
  /// - Throws: `storeMissing` where it is not.
  func open(
    _ name: DatabaseName, making makes: Bool, options: SyncHandler.Options
  ) throws(TidemarkError) -> SyncHandler
  /// Calls `body` with each database that has something new, also a closed one, whichever server
  /// has appended it.
  /// - Returns: false where no other server appends: then the open databases tell it.
  func onChange(_ body: @escaping @Sendable (DatabaseName) -> Void) -> Bool
  /// Settings under which acknowledged writes may be lost, to be logged when the server starts.
  var warnings: [String] { get }
  var metrics: [HomeMetric] { get }
  /// Whether an operator has revoked a caller, or its replica.
  func refuses(_ caller: Caller, _ replica: ReplicaID) -> Bool
  /// Calls `body` when somebody else is refused than before.
  func onRefusal(_ body: @escaping @Sendable () -> Void)
  func close()
}

extension DatabaseHome {
  var warnings: [String] { [] }
  var metrics: [HomeMetric] { [] }
  func refuses(_ caller: Caller, _ replica: ReplicaID) -> Bool { false }
  func onRefusal(_ body: @escaping @Sendable () -> Void) {}
}

/// A directory that this process alone opens.
struct DirectoryHome: DatabaseHome {
  private let directory: DataDirectory
  private let configuration: Store.Configuration

  /// - Parameters:
  ///   - path: the directory; made where there is none.
  ///   - retention: for how long history is kept; nil for the stores' own.
  ///   - cacheBytes: bytes of decoded parts of logs that all open databases cache together.
  init(
    _ path: String, retention: Retention? = nil, cacheBytes: Int = ServerLimits().cacheBytes
  ) throws(SettingsError) {
    directory = try DataDirectory(path)
    // The server's compactor compacts all databases in turn, by way of their feeds. Feeds read by
    // position, so a cache by key would not help.
    var configuration = Store.Configuration(
      retention: retention, cacheBytes: 0, compaction: .onRequest)
    configuration.upkeep = StoreUpkeep()
    configuration.sharedCache = SharedCache(bytes: cacheBytes)
    self.configuration = configuration
  }

  var isReady: Bool { true }
  func names() -> [DatabaseName] { directory.names() }
  func count() -> Int { directory.names().count }
  func has(_ name: DatabaseName) -> Bool { directory.has(name) }

  func open(
    _ name: DatabaseName, making makes: Bool, options: SyncHandler.Options
  ) throws(TidemarkError) -> SyncHandler {
    try SyncHandler(
      at: directory.store(of: name), configuration: configuration(makes ? .create : .write),
      options: options)
  }

  /// How a store is opened.
  func configuration(_ access: Store.Access) -> Store.Configuration {
    var configuration = configuration
    configuration.access = access
    return configuration
  }

  func onChange(_ body: @escaping @Sendable (DatabaseName) -> Void) -> Bool { false }
  func close() {}
}
