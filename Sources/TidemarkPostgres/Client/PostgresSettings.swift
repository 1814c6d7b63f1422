#if PostgreSQL
  /// How a sync server connects to PostgreSQL: addresses, number of connections, timeouts and
  /// history.
  public struct PostgresSettings: Sendable {
    /// The address of PostgreSQL: a URI or a connection string in the syntax of libpq. It may
    /// contain a password, so keep it out of logs.
    public var url: String
    /// Whether the connections pass a pooler (pgbouncer in transaction mode). If so, the server
    /// prepares no statements and sets nothing for a session. The default is false.
    public var isPooled = false
    /// The address for notifications, which cannot pass a pooler. With nil the server polls the
    /// ends of the feeds every second instead. The default is ``url``.
    public var directURL: String?
    /// The most connections for calls at a time; the default is 16. Two more connections receive
    /// news.
    public var connections = 16
    /// Whether the server counts as ready (``PostgresFeeds/isReady``) only while PostgreSQL lets
    /// commits wait for a synchronous standby. The default is false.
    public var requiresStandby = false
    /// For how long a compaction keeps superseded entries. The default is zero: the next compaction
    /// deletes them.
    public var history: Duration = .zero
    /// The longest time to connect to one host, in whole seconds; the default is three seconds.
    public var connectTimeout: Duration = .seconds(3)
    /// The longest time that one call may take, in whole seconds; the default is ten seconds.
    public var callTimeout: Duration = .seconds(10)

    /// Creates settings with the defaults for an address.
    /// - Parameter url: the address for calls and for notifications, such as
    ///   `postgresql://user@host/database`.
    public init(url: String) {
      self.url = url
      directURL = url
    }
  }
#endif
