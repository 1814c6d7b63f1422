/// The limits that the server sets its callers.
public struct ServerLimits: Sendable {
  /// Longest body of a request, and most raw bytes of a frame in one.
  public var bodyBytes = 8 << 20
  /// The memory that all request bodies may take together, and all answers that callers have not
  /// read yet.
  public var allBodyBytes = 256 << 20
  public var allAnswerBytes = 256 << 20
  /// Most bytes of all header fields of a request.
  public var headerBytes = 16 << 10
  /// Most header fields of a request.
  public var headerFields = 64

  /// Most connections, and most from one address. Beyond that the longest idle one is closed.
  public var connections = 2048
  public var connectionsPerAddress = 1024
  /// Most long polls, of all callers and of one caller.
  public var waiting = 1536
  public var waitingPerCaller = 512
  /// How many long polls of a database are answered at a time after a push: between two such slices
  /// other calls have their turn.
  public var wokenAtOnce = 64
  /// The longest wait of a long poll.
  public var wait = Duration.seconds(30)

  /// How long a new connection may take until its first request's header is received.
  public var headerTimeout = Duration.seconds(10)
  /// How long a connection may stay without a request.
  public var idleTimeout = Duration.seconds(75)
  /// How long a request's body may take.
  public var bodyTimeout = Duration.seconds(60)
  /// How long a caller may take to read an answer.
  public var answerTimeout = Duration.seconds(60)
  /// How long a body may still be received, and ignored, after its request was answered.
  public var lingerTimeout = Duration.seconds(2)

  /// Requests of one caller in a second, and its burst (token bucket); 0 for any number.
  public var requestsPerSecond = 500.0
  public var requestsAtOnce = 1000.0
  /// Which share of a thread's time digests of one caller may take, and its burst; as much again
  /// for pulls that find nothing. 0 for any share.
  public var searchShare = 0.5
  public var searchAtOnce = Duration.seconds(60)
  /// Most callers for which the rate limits keep a count.
  public var countedCallers = 65_536

  /// Most databases that are open at a time.
  public var openDatabases = 128
  /// With so many databases in the directory no more are created.
  public var databases = 10_000
  /// Databases that one caller may create in a minute, at once or one after the other; 0 for any
  /// number.
  public var newDatabasesPerMinute = 60.0
  /// After which time an unused database is closed.
  public var databaseIdle = Duration.seconds(600)
  /// After which time a database that failed to open is opened again.
  public var databaseRetry = Duration.seconds(5)
  /// Bytes of decoded parts of logs that all open databases may cache together.
  public var cacheBytes = 256 << 20

  /// For how long `/health` reports a failure of the disk.
  public var diskFailureTold = Duration.seconds(60)

  /// Threads for work that blocks on the disk, and most of them for one database.
  public var threads = 8
  public var threadsPerDatabase = 4
  /// Most calls that wait for a thread.
  public var queuedCalls = 1024

  /// Most log lines about requests in a second.
  public var logLinesPerSecond = 50

  /// The defaults.
  public init() {}
}
