internal import Tidemark
internal import TidemarkSyncServer

#if PostgreSQL
  internal import TidemarkPostgres

  /// Databases in tables of PostgreSQL, which other servers serve, too.
  struct PostgresHome: DatabaseHome {
    let feeds: PostgresFeeds

    init(_ options: PostgresOptions, history: Duration) throws(SettingsError) {
      let settings = options.settings(history: history)
      do throws(TidemarkError) {
        if options.appliesSchema { try PostgresFeeds.applySchema(settings) }
        feeds = try PostgresFeeds(settings)
      } catch {
        throw SettingsError(error.message, .unavailable)
      }
    }

    var isReady: Bool { feeds.isReady }

    var warnings: [String] { feeds.warnings }

    var metrics: [HomeMetric] {
      feeds.metrics.map {
        HomeMetric(
          name: $0.name, kind: $0.kind.rawValue, help: $0.help, labels: $0.labels, value: $0.value)
      }
    }

    func refuses(_ caller: Caller, _ replica: ReplicaID) -> Bool {
      let hexadecimal = replica.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
      let all = [
        Revocation(.replica, hexadecimal.joined()), caller.subject.map { Revocation(.subject, $0) },
        caller.tokenID.map { Revocation(.token, $0) },
      ]
      return all.contains { $0.map(feeds.isRevoked) ?? false }
    }

    func onRefusal(_ body: @escaping @Sendable () -> Void) { feeds.onRevocation(body) }

    func names() -> [DatabaseName] {
      var names: [String] = []
      while let more = try? feeds.names(after: names.last ?? ""), !more.isEmpty { names += more }
      return names.compactMap { DatabaseName($0) }
    }

    func count() throws(TidemarkError) -> Int { try feeds.count() }

    func has(_ name: DatabaseName) -> Bool {
      // Where that cannot be found out the call that follows tells it.
      (try? feeds.has(name.description)) ?? true
    }

    func open(
      _ name: DatabaseName, making makes: Bool, options: SyncHandler.Options
    ) throws(TidemarkError) -> SyncHandler {
      try feeds.handler(of: name.description, creating: makes, options: options)
    }

    func onChange(_ body: @escaping @Sendable (DatabaseName) -> Void) -> Bool {
      feeds.onNews { name in DatabaseName(name).map(body) }
      return true
    }

    func close() { feeds.close() }
  }
#else
  /// A server that was built without the trait `PostgreSQL`.
  enum PostgresHome {
    static func unavailable() -> SettingsError {
      SettingsError("this server was built without PostgreSQL: build it with `Tools/server`")
    }
  }
#endif

/// How a server reaches PostgreSQL.
public struct PostgresOptions: Sendable {
  /// A URI or a connection string, as libpq takes it.
  public var url: String
  /// Whether a pooler in transaction mode stands before it.
  public var isPooled = false
  /// The address for notifications where one does.
  public var directURL: String?
  /// Most connections, but for one for notifications.
  public var connections = 16
  /// Whether `/ready` answers 503 while commits do not wait for a synchronous standby.
  public var requiresStandby = false
  /// Whether the tables are made, or brought to this release's version, at the start.
  public var appliesSchema = false

  public init(url: String) { self.url = url }

  #if PostgreSQL
    func settings(history: Duration) -> PostgresSettings {
      var settings = PostgresSettings(url: url)
      (settings.isPooled, settings.connections) = (isPooled, connections)
      settings.directURL = isPooled ? directURL : directURL ?? url
      (settings.history, settings.requiresStandby) = (history, requiresStandby)
      return settings
    }
  #endif

  /// The home of its databases.
  func home(history: Duration) throws(SettingsError) -> any DatabaseHome {
    #if PostgreSQL
      return try PostgresHome(self, history: history)
    #else
      throw PostgresHome.unavailable()
    #endif
  }
}
