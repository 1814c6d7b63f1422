internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import SyncServerKit
internal import TidemarkSyncServer

/// Measures long polls: one in each of many databases, and many in one.
struct WaitingRows {
  let place: Place
  let program: String
  let group: any EventLoopGroup
  /// The address of a PostgreSQL server that has the databases; nil for a directory.
  var postgres: String?

  private func server(for callers: Int) throws -> ServerProcess {
    _ = ProcessLimits.raiseOpenFiles()
    let room = String(callers + 64)
    return try ServerProcess(
      program, data: try postgres ?? place.make("waiting"),
      [
        "--max-connections", room, "--max-connections-per-address", room, "--max-waiting", room,
        "--max-waiting-per-caller", room, "--max-new-databases", "0", "--max-databases", room,
        "--max-search-percent", "0", "--max-wait", "600",
      ])
  }

  /// Many databases with a long poll each, in one process; then some of them get a push.
  func manyDatabases(count: Int) async throws {
    let server = try server(for: count)
    defer { server.stop() }
    let start = Date()
    let listeners = try await listeners(count, of: { "user\($0)" }, server)
    let prepared = Date().timeIntervalSince(start)
    let size = server.size
    say(
      "\(count) databases with a waiting user each: \(size.bytes >> 20) MiB, "
        + "\(size.threads) threads, \(size.bytes / max(1, count)) bytes each; "
        + "\(String(format: "%.0f", prepared)) s to get there")
    let sample = stride(from: 0, to: count, by: max(1, count / 200)).map { listeners[$0] }
    let (writer, channel) = try await CallConnection.open(server.port, on: group)
    let sent = Date()
    for listener in sample {
      try await Self.push(writer, channel, listener.database)
    }
    let (answered, refused, last) = try await Self.outcomes(sample)
    say(
      "  pushes to \(sample.count) of them: \(answered) heard of it, \(refused) refused, "
        + "\(Int(last.timeIntervalSince(sent) * 1000)) ms in all, "
        + "\(server.size.threads) threads after that")
    for listener in listeners { listener.channel.close(promise: nil) }
  }

  /// Many long polls of one database; then a push.
  /// - Parameter changes: how many changes the push has.
  func oneDatabase(listeners count: Int, changes: Int) async throws {
    let server = try server(for: count)
    defer { server.stop() }
    let (writer, channel) = try await CallConnection.open(server.port, on: group)
    let listeners = try await listeners(count, of: { _ in "shared" }, server)
    let size = server.size
    say(
      "\(count) listeners of one database: \(size.bytes >> 20) MiB, \(size.threads) threads, "
        + "\(size.bytes / max(1, count)) bytes each")
    let before = server.processorSeconds
    let sent = Date()
    try await Self.push(writer, channel, "shared", changes: changes)
    let (answered, refused, last) = try await Self.outcomes(listeners)
    say(
      "  a push of \(changes): \(answered) heard of it, \(refused) refused, the last after "
        + "\(Int(last.timeIntervalSince(sent) * 1000)) ms; "
        + "\(Int((server.processorSeconds - before) * 1000)) ms of the server's processor")
    for listener in listeners { listener.channel.close(promise: nil) }
  }

  /// Connections with a waiting long poll each.
  private func listeners(
    _ count: Int, of database: @escaping @Sendable (Int) -> String, _ server: ServerProcess
  ) async throws -> [Listener] {
    let (port, group) = (server.port, group)
    var all: [Listener] = []
    all.reserveCapacity(count)
    // A few at a time, as each may create its database.
    for first in stride(from: 0, to: count, by: 16) {
      all += try await withThrowingTaskGroup(of: Listener.self) { tasks in
        for index in first..<min(count, first + 16) {
          tasks.addTask {
            let (connection, channel) = try await CallConnection.open(port, on: group)
            let listener = Listener(connection, channel, index, database(index))
            try await listener.wait()
            return listener
          }
        }
        return try await tasks.reduce(into: []) { $0.append($1) }
      }
    }
    // Time for the server to receive the last pulls.
    try await Task.sleep(for: .seconds(2))
    return all
  }

  private static func push(
    _ writer: CallConnection, _ channel: any Channel, _ database: String, changes: Int = 1
  ) async throws {
    let replica = ReplicaID.bench(1 << 40)
    let hello = WireMessage.helloRequest(HelloRequest(replica: replica))
    _ = try await writer.answer(hello, of: database, channel)
    let values = (1...changes).map { index in
      (0..<10).map { field in #""field \(field)":\(index * 7919 * (field + 1)),"# }.joined()
    }
    let push = WireMessage.pushRequest(
      PushRequest(
        replica: replica, number: 1, batchID: BatchID(1),
        changes: values.enumerated().map { index, value in
          PushedChange(
            sequence: UInt64(index + 1), kind: .put, key: Array("news/\(index)".utf8),
            content: SyncContent(value: Array(value.utf8)),
            commitTime: 1_700_000_000_000 << 16)
        }))
    guard case .pushAnswer = try await writer.answer(push, of: database, channel) else {
      throw BenchError("the push was refused")
    }
  }

  private static func outcomes(_ listeners: [Listener]) async throws -> (Int, Int, Date) {
    var (answered, refused, last) = (0, 0, Date.distantPast)
    for listener in listeners {
      let (isNews, time) = try await listener.outcome.get()
      if isNews { answered += 1 } else { refused += 1 }
      last = max(last, time)
    }
    return (answered, refused, last)
  }
}

/// A replica with a long poll at the end of the feed.
final class Listener: Sendable {
  private let connection: CallConnection
  let channel: any Channel
  private let replica: ReplicaID
  let database: String
  private let promise: EventLoopPromise<(Bool, Date)>

  /// Whether the long poll returned entries, and when; completes only after a push.
  var outcome: EventLoopFuture<(Bool, Date)> { promise.futureResult }

  init(_ connection: CallConnection, _ channel: any Channel, _ index: Int, _ database: String) {
    self.connection = connection
    self.channel = channel
    self.database = database
    replica = .bench(index)
    promise = connection.loop.makePromise()
  }

  /// Says hello and sends a long poll.
  func wait() async throws {
    let hello = WireMessage.helloRequest(HelloRequest(replica: replica))
    let message = try await connection.answer(hello, of: database, channel)
    guard case .helloAnswer(let answer) = message else { throw BenchError("no hello: \(message)") }
    let pull = WireMessage.pullRequest(
      PullRequest(
        replica: replica, after: answer.range.headPosition, waitMilliseconds: 600_000))
    connection.loop.execute { [self] in
      connection.call(pull, of: database, channel) { [promise] status, body in
        guard status == 200, case .pullAnswer(let page)? = try? WireCoder().decode(body) else {
          return promise.succeed((false, Date()))
        }
        promise.succeed((!page.entries.isEmpty, Date()))
      }
    }
  }
}
