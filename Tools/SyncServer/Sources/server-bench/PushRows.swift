internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import Synchronization
internal import TidemarkSyncServer

/// Measures pushes of one entry, and in comparison the engine alone.
struct PushRows {
  let place: Place
  let program: String
  let group: any EventLoopGroup
  let seconds: Double

  func run() async throws {
    let bare = BareRates(place: place, seconds: seconds)
    say(
      "| One-entry writes a second, durable | rate | of the engine | server's µs of processor |")
    say("|---|---|---|---|")
    for clients in [1, 4, 16] {
      let engine = try bare.puts(clients, stores: 1)
      row("\(clients) writers, one store, engine alone", engine)
      let (pushes, processor) = try await self.pushes(clients, databases: 1)
      row("\(clients) clients, one database, over HTTP", pushes, of: engine, processor)
    }
    for clients in [64, 256] {
      let engine = try bare.puts(clients, stores: 64)
      row("\(clients) writers, 64 stores, engine alone", engine)
      let (pushes, processor) = try await self.pushes(clients, databases: 64)
      row("\(clients) clients, 64 databases, over HTTP", pushes, of: engine, processor)
    }
  }

  private func row(
    _ name: String, _ rate: Double, of engine: Double? = nil, _ processor: Double? = nil
  ) {
    let ratio = engine.map { String(format: "%.2f", rate / $0) } ?? ""
    let time = processor.map { String(Int($0 * 1_000_000)) } ?? ""
    say("| \(name) | \(Int(rate)) | \(ratio) | \(time) |")
  }

  /// - Returns: pushes a second, and the server's processor time for each, in seconds.
  private func pushes(_ clients: Int, databases: Int) async throws -> (Double, Double) {
    let server = try ServerProcess(
      program, data: try place.make("pushes"), ["--max-new-databases", "0"])
    defer { server.stop() }
    var pushers: [Pusher] = []
    for index in 0..<clients {
      let (connection, channel) = try await CallConnection.open(server.port, on: group)
      let pusher = Pusher(connection, channel, index, "db\(index % databases)")
      try await pusher.greet()
      pushers.append(pusher)
    }
    // A warm-up, so that all databases are open.
    _ = try await measure(pushers, seconds: 0.5)
    let before = server.processorSeconds
    let rate = try await measure(pushers, seconds: seconds)
    let used = server.processorSeconds - before
    for pusher in pushers { try? await pusher.channel.close() }
    return (rate, used / max(1, rate * seconds))
  }

  private func measure(_ pushers: [Pusher], seconds: Double) async throws -> Double {
    let end = NIODeadline.now() + .milliseconds(Int64(seconds * 1000))
    let counts = try await withThrowingTaskGroup(of: Int.self) { tasks in
      for pusher in pushers { tasks.addTask { try await pusher.run(until: end) } }
      return try await tasks.reduce(0, +)
    }
    return Double(counts) / seconds
  }
}

/// A replica that pushes one entry after the other.
final class Pusher: Sendable {
  private let connection: CallConnection
  let channel: any Channel
  private let replica: ReplicaID
  private let database: String
  private let next = Mutex<UInt64>(1)

  init(_ connection: CallConnection, _ channel: any Channel, _ index: Int, _ database: String) {
    self.connection = connection
    self.channel = channel
    self.database = database
    replica = .bench(index)
  }

  func greet() async throws {
    let hello = WireMessage.helloRequest(HelloRequest(replica: replica))
    guard case .helloAnswer = try await connection.answer(hello, of: database, channel) else {
      throw BenchError("no hello")
    }
  }

  /// Pushes until a time.
  /// - Returns: how many pushes were acknowledged.
  func run(until end: NIODeadline) async throws -> Int {
    let promise = connection.loop.makePromise(of: Int.self)
    connection.loop.execute { self.push(until: end, 0, promise) }
    return try await promise.futureResult.get()
  }

  private func push(until end: NIODeadline, _ count: Int, _ promise: EventLoopPromise<Int>) {
    guard NIODeadline.now() < end else { return promise.succeed(count) }
    let number = next.withLock { $0 }
    let change = PushedChange(
      sequence: number, kind: .put, key: Array("key/\(replica)/\(number)".utf8),
      content: SyncContent(value: Array("value \(number)".utf8)),
      commitTime: 1_700_000_000_000 << 16)
    let request = PushRequest(
      replica: replica, number: number, batchID: BatchID(number), changes: [change])
    connection.call(.pushRequest(request), of: database, channel) { status, body in
      guard status == 200 else {
        return promise.fail(
          BenchError("a push failed: \(status) \(String(decoding: body, as: UTF8.self))"))
      }
      self.next.withLock { $0 = number + 1 }
      self.push(until: end, count + 1, promise)
    }
  }
}

extension ReplicaID {
  /// The replica of a client of the benchmark.
  static func bench(_ index: Int) -> ReplicaID {
    let number = UInt64(index + 1)
    let bytes = (0..<16).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 8))) }
    guard let replica = ReplicaID(bytes) else { preconditionFailure("a replica has 16 bytes") }
    return replica
  }
}
