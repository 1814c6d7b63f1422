/// The limits that the server sets its callers, all in one place.
public struct ServerLimits: Sendable {
  /// Longest body of a request, and most raw bytes of a frame in one.
  public var bodyBytes = 8 << 20
  /// The memory that all bodies that are in hand may take together, and all answers that have not
  /// been read yet.
  public var allBodyBytes = 256 << 20
  public var allAnswerBytes = 256 << 20
  /// Most bytes of all header fields of a request.
  public var headerBytes = 16 << 10
  /// Most header fields of a request.
  public var headerFields = 64

  /// Most connections, and most from one address. Beyond that the longest idle one has to go.
  public var connections = 2048
  public var connectionsPerAddress = 1024
  /// Most calls that wait together, and those of one caller.
  public var waiting = 1536
  public var waitingPerCaller = 512
  /// How many that wait for a database are answered at a time when something comes to it: between
  /// two such slices other calls have their turn.
  public var wokenAtOnce = 64
  /// How long a call may wait.
  public var wait = Duration.seconds(30)

  /// How long a new connection may take until its first request's header has come.
  public var headerTimeout = Duration.seconds(10)
  /// How long a connection may stay without a request.
  public var idleTimeout = Duration.seconds(75)
  /// How long a request's body may take.
  public var bodyTimeout = Duration.seconds(60)
  /// How long a caller may take to read an answer.
  public var answerTimeout = Duration.seconds(60)
  /// How long the rest of a body that nobody reads may still come.
  public var lingerTimeout = Duration.seconds(2)

  /// Requests of one caller in a second, and how many it may save up; 0 for any number.
  public var requestsPerSecond = 500.0
  public var requestsAtOnce = 1000.0
  /// Which part of a thread's time comparisons of one caller may take, and how much of it may be
  /// saved up; as much again for pulls that find nothing. 0 for any part.
  public var searchShare = 0.5
  public var searchAtOnce = Duration.seconds(60)
  /// Most callers whose requests are counted one by one.
  public var countedCallers = 65_536

  /// Most databases that are open at a time.
  public var openDatabases = 128
  /// Most databases that the directory may hold before no more are made.
  public var databases = 10_000
  /// Databases that one caller may make in a minute, at once or one after the other; 0 for any
  /// number.
  public var newDatabasesPerMinute = 60.0
  /// When a database that nobody uses is closed.
  public var databaseIdle = Duration.seconds(600)
  /// When one that failed to open is tried again.
  public var databaseRetry = Duration.seconds(5)
  /// Bytes that all open databases may cache of values and of decoded parts of their logs.
  public var cacheBytes = 256 << 20

  /// For how long `/health` tells that a disk has failed.
  public var diskFailureTold = Duration.seconds(60)

  /// Threads that wait for the disk, and most that wait for one database.
  public var threads = 8
  public var threadsPerDatabase = 4
  /// Most calls that wait for a thread.
  public var queuedCalls = 1024

  /// Most lines about failed requests in a second.
  public var logLinesPerSecond = 50

  /// The defaults.
  public init() {}
}
