#if PostgreSQL
  /// How a server reaches PostgreSQL.
  public struct PostgresSettings: Sendable {
    /// The address: a URI or a connection string as libpq takes it. Whoever sees it may see a
    /// password.
    public var url: String
    /// Whether a pooler (pgbouncer in transaction mode) stands before PostgreSQL: then nothing is
    /// prepared and nothing set for a session.
    public var isPooled = false
    /// The address for notifications, which do not pass a pooler; nil where there is none, and the
    /// heads of the databases are polled every second.
    public var directURL: String?
    /// Most connections at a time, but for two for news.
    public var connections = 16
    /// Whether a server counts as ready (``PostgresFeeds/isReady``) only while PostgreSQL is set to
    /// let commits wait for a synchronous standby.
    public var requiresStandby = false
    /// For how long superseded entries are kept before a compaction deletes them.
    public var history: Duration = .zero
    /// How long connecting to one host, and how long a call may take, in whole seconds.
    public var connectTimeout: Duration = .seconds(3)
    public var callTimeout: Duration = .seconds(10)

    /// Settings.
    /// - Parameter url: the address, such as `postgresql://user@host/database`.
    public init(url: String) {
      self.url = url
      directURL = url
    }
  }
#endif
