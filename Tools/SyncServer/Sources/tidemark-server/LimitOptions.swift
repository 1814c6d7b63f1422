internal import ArgumentParser
internal import SyncServerKit

private let defaults = ServerLimits()
private let most = 1 << 40

/// The options that bound what callers may use of the server.
struct LimitOptions: ParsableArguments {
  @Option(1...most, "bytes", "Longest body of a request in bytes.")
  var maxBody = defaults.bodyBytes
  @Option(1...most, "bytes", "What all bodies in hand may have together, in bytes.")
  var maxAllBodies = defaults.allBodyBytes
  @Option(1...most, "count", "Most connections.")
  var maxConnections = defaults.connections
  @Option(1...most, "count", "Most connections from one address.")
  var maxConnectionsPerAddress = defaults.connectionsPerAddress
  @Option(0...most, "count", "Most waiting pulls together.")
  var maxWaiting = defaults.waiting
  @Option(0...most, "count", "Most waiting pulls of one caller.")
  var maxWaitingPerCaller = defaults.waitingPerCaller
  @Option(0...Double(most), "count", "Requests of one caller in a second; 0 for any number.")
  var rate = defaults.requestsPerSecond
  @Option(0...Double(most), "count", "How many requests a caller may make at once.")
  var burst = defaults.requestsAtOnce
  @Option(
    0...most, "percent",
    "How much of a thread comparisons of one caller may take in the long run, in percent, and as "
      + "much again its pulls that find nothing; 0 for any part.")
  var maxSearchPercent = Int(defaults.searchShare * 100)
  @Option(1...most, "seconds", "Longest time that a pull waits, in seconds.")
  var maxWait = defaults.wait.seconds
  @Option(
    1...most, "seconds", "How long a new connection may take to make a request, in seconds.")
  var headerTimeout = defaults.headerTimeout.seconds
  @Option(1...most, "seconds", "How long a connection may stay without a request, in seconds.")
  var idleTimeout = defaults.idleTimeout.seconds
  @Option(1...most, "seconds", "How long a request's body may take, in seconds.")
  var bodyTimeout = defaults.bodyTimeout.seconds
  @Option(1...most, "count", "Most databases that are open at a time.")
  var maxOpenDatabases = defaults.openDatabases
  @Option(0...most, "count", "Most databases before no more are made.")
  var maxDatabases = defaults.databases
  @Option(
    0...Double(most), "count",
    "Databases that one caller may make in a minute; 0 for any number.")
  var maxNewDatabases = defaults.newDatabasesPerMinute
  @Option(1...most, "seconds", "Seconds until a database that nobody uses is closed.")
  var databaseIdle = defaults.databaseIdle.seconds
  @Option(0...most, "bytes", "What all open databases may cache, in bytes.")
  var cache = defaults.cacheBytes
  @Option(1...most, "count", "Threads that wait for the disk.")
  var threads = defaults.threads

  func apply(to limits: inout ServerLimits) {
    limits.bodyBytes = maxBody
    limits.allBodyBytes = maxAllBodies
    limits.connections = maxConnections
    limits.connectionsPerAddress = maxConnectionsPerAddress
    limits.waiting = maxWaiting
    limits.waitingPerCaller = maxWaitingPerCaller
    limits.requestsPerSecond = rate
    limits.requestsAtOnce = burst
    limits.searchShare = Double(maxSearchPercent) / 100
    limits.wait = .seconds(maxWait)
    limits.headerTimeout = .seconds(headerTimeout)
    limits.idleTimeout = .seconds(idleTimeout)
    limits.bodyTimeout = .seconds(bodyTimeout)
    limits.openDatabases = maxOpenDatabases
    limits.databases = maxDatabases
    limits.newDatabasesPerMinute = maxNewDatabases
    limits.databaseIdle = .seconds(databaseIdle)
    limits.cacheBytes = cache
    limits.threads = min(threads, 256)
    limits.threadsPerDatabase = max(1, limits.threads / 2)
  }
}
