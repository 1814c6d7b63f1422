internal import ArgumentParser
internal import SyncServerKit

/// The options that bound what callers may use of the server.
struct LimitOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Longest body of a request in bytes. (default: 8388608)", valueName: "bytes")
  )
  var maxBody: Int?
  @Option(
    help: ArgumentHelp(
      "What all bodies in hand may have together, in bytes. (default: 268435456)",
      valueName: "bytes"))
  var maxAllBodies: Int?
  @Option(help: ArgumentHelp("Most connections. (default: 2048)", valueName: "count"))
  var maxConnections: Int?
  @Option(
    help: ArgumentHelp("Most connections from one address. (default: 1024)", valueName: "count"))
  var maxConnectionsPerAddress: Int?
  @Option(
    help: ArgumentHelp(
      "Most waiting pulls together. (default: 1536)", valueName: "count"))
  var maxWaiting: Int?
  @Option(
    help: ArgumentHelp(
      "Most waiting pulls of one caller. (default: 512)", valueName: "count"))
  var maxWaitingPerCaller: Int?
  @Option(
    help: ArgumentHelp(
      "Requests of one caller in a second; 0 for any number. (default: 500)", valueName: "count"))
  var rate: Double?
  @Option(
    help: ArgumentHelp(
      "How many requests a caller may make at once. (default: 1000)", valueName: "count"))
  var burst: Double?
  @Option(
    help: ArgumentHelp(
      "How much of a thread comparisons of one caller may take in the long run, in percent, and as "
        + "much again its pulls that find nothing; 0 for any part. (default: 50)",
      valueName: "percent"))
  var maxSearchPercent: Int?
  @Option(
    help: ArgumentHelp(
      "Longest time that a pull waits, in seconds. (default: 30)", valueName: "seconds"))
  var maxWait: Int?
  @Option(
    help: ArgumentHelp(
      "How long a new connection may take to make a request, in seconds. (default: 10)",
      valueName: "seconds"))
  var headerTimeout: Int?
  @Option(
    help: ArgumentHelp(
      "How long a connection may stay without a request, in seconds. (default: 75)",
      valueName: "seconds"))
  var idleTimeout: Int?
  @Option(
    help: ArgumentHelp(
      "How long a request's body may take, in seconds. (default: 60)", valueName: "seconds"))
  var bodyTimeout: Int?
  @Option(
    help: ArgumentHelp("Most databases that are open at a time. (default: 128)", valueName: "count")
  )
  var maxOpenDatabases: Int?
  @Option(
    help: ArgumentHelp(
      "Most databases before no more are made. (default: 10000)", valueName: "count"))
  var maxDatabases: Int?
  @Option(
    help: ArgumentHelp(
      "Databases that one caller may make in a minute; 0 for any number. (default: 60)",
      valueName: "count"))
  var maxNewDatabases: Double?
  @Option(
    help: ArgumentHelp(
      "Seconds until a database that nobody uses is closed. (default: 600)", valueName: "seconds"))
  var databaseIdle: Int?
  @Option(
    help: ArgumentHelp(
      "What all open databases may cache, in bytes. (default: 268435456)", valueName: "bytes"))
  var cache: Int?
  @Option(help: ArgumentHelp("Threads that wait for the disk. (default: 8)", valueName: "count"))
  var threads: Int?

  func apply(to options: inout ServerOptions) throws {
    func number(_ option: Int?, _ name: String, atLeast least: Int = 1) throws -> Int? {
      guard let value = try option ?? Setting.number(name) else { return nil }
      guard (least...1 << 40).contains(value) else {
        throw ValidationError("\(name.lowercased()) has to be \(least) or more")
      }
      return value
    }
    func seconds(_ option: Int?, _ name: String) throws -> Duration? {
      try number(option, name).map { .seconds($0) }
    }
    func set<V>(_ path: WritableKeyPath<ServerLimits, V>, _ value: V?) {
      if let value { options.limits[keyPath: path] = value }
    }
    set(\.bodyBytes, try number(maxBody, "MAX_BODY"))
    set(\.allBodyBytes, try number(maxAllBodies, "MAX_ALL_BODIES"))
    set(\.connections, try number(maxConnections, "MAX_CONNECTIONS"))
    set(
      \.connectionsPerAddress,
      try number(maxConnectionsPerAddress, "MAX_CONNECTIONS_PER_ADDRESS"))
    set(\.waiting, try number(maxWaiting, "MAX_WAITING", atLeast: 0))
    set(\.waitingPerCaller, try number(maxWaitingPerCaller, "MAX_WAITING_PER_CALLER", atLeast: 0))
    set(\.requestsPerSecond, try rate ?? Setting.number("RATE"))
    set(\.requestsAtOnce, try burst ?? Setting.number("BURST"))
    set(
      \.searchShare,
      try number(maxSearchPercent, "MAX_SEARCH_PERCENT", atLeast: 0).map { Double($0) / 100 })
    set(\.wait, try seconds(maxWait, "MAX_WAIT"))
    set(\.headerTimeout, try seconds(headerTimeout, "HEADER_TIMEOUT"))
    set(\.idleTimeout, try seconds(idleTimeout, "IDLE_TIMEOUT"))
    set(\.bodyTimeout, try seconds(bodyTimeout, "BODY_TIMEOUT"))
    set(\.openDatabases, try number(maxOpenDatabases, "MAX_OPEN_DATABASES"))
    set(\.databases, try number(maxDatabases, "MAX_DATABASES", atLeast: 0))
    set(\.newDatabasesPerMinute, try maxNewDatabases ?? Setting.number("MAX_NEW_DATABASES"))
    set(\.databaseIdle, try seconds(databaseIdle, "DATABASE_IDLE"))
    set(\.cacheBytes, try number(cache, "CACHE", atLeast: 0))
    if let threads = try number(threads, "THREADS") {
      options.limits.threads = min(threads, 256)
      options.limits.threadsPerDatabase = max(1, min(threads, 256) / 2)
    }
  }
}
