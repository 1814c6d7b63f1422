internal import ArgumentParser
internal import NIOCore
internal import NIOPosix

/// Measures the server over HTTP on this machine, and in the same run the engine alone:
/// `Tools/bench server`.
@main
struct ServerBench: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "server-bench",
    abstract: "Measures pushes, waiting callers and listeners of tidemark-server.",
    discussion: """
      Every row is measured in the same run, client and server on this machine. Compare rows, not \
      machines.
      """)

  @Option(help: "The server's program.")
  var server: String
  @Option(help: "Where databases are made; the directory of a new run goes when it ends.")
  var directory = "/tmp"
  @Option(help: "The parts to run: pushes, waiting, listeners; over PostgreSQL also reads, upkeep.")
  var only = "pushes,waiting,listeners,reads,upkeep"
  @Option(help: "Seconds for each row.")
  var seconds = 3.0
  @Option(help: "Databases with one waiting user each.")
  var waiting = 10_000
  @Option(help: "Listeners of one database.")
  var listeners = 5_000
  @Option(help: "The address (postgresql://…) of a database without tables of Tidemark.")
  var postgres: String?
  @Option(help: "Keys of the database that is read there.")
  var keys = 100_000

  func run() async throws {
    let parts = Set(only.split(separator: ",").map(String.init))
    let place = try Place(in: directory)
    defer { place.remove() }
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    guard let postgres else {
      if parts.contains("pushes") {
        try await PushRows(place: place, program: server, group: group, seconds: seconds).run()
      }
      return try await wait(parts, place, group)
    }
    #if PostgreSQL
      let rows = PostgresRows(place: place, url: postgres, seconds: seconds, keys: keys)
      try rows.makeTables()
      defer { rows.dropTables() }
      try rows.run(parts)
      try await wait(parts, place, group)
    #else
      throw BenchError("this build has no PostgreSQL; say --traits PostgreSQL to the compiler")
    #endif
  }

  private func wait(
    _ parts: Set<String>, _ place: Place, _ group: MultiThreadedEventLoopGroup
  ) async throws {
    if parts.contains("waiting") {
      try await WaitingRows(place: place, program: server, group: group, postgres: postgres)
        .manyDatabases(count: waiting)
    }
    if parts.contains("listeners") {
      let rows = WaitingRows(place: place, program: server, group: group, postgres: postgres)
      for changes in [1, 256] {
        try await rows.oneDatabase(listeners: listeners, changes: changes)
      }
    }
    try await group.shutdownGracefully()
  }
}
