import SyncServerKit
import Testing
import Tidemark
import TidemarkHTTP
import TidemarkSync
import TidemarkSyncServer

/// The bytes that the server gives back by itself while it goes on.
@Suite("Compaction in the background", .timeLimit(.minutes(20)))
struct UpkeepTests {
  private let writer = ReplicaID.test(1)

  /// A guard against hanging: no round takes as long, however busy the machine is.
  private var guardTime: ContinuousClock.Instant { .now + .seconds(900) }

  /// Looks all the time, and keeps no history.
  private func eager(_ options: inout ServerOptions) {
    options.compaction.history = .zero
    options.compaction.interval = .milliseconds(50)
    options.compaction.longInterval = .milliseconds(200)
    options.compaction.leastBytes = 64 << 10
  }

  private func metric(_ name: String, of server: TestServer) async throws -> Double {
    let text = try await server.request("GET", "/metrics").text
    let line = text.split(separator: "\n").first { $0.hasPrefix("tidemark_\(name) ") }
    return try #require(line.flatMap { Double($0.split(separator: " ")[1]) })
  }

  private func awaitCompaction(on server: TestServer) async throws {
    try await eventually {
      try await metric("compactions_total", of: server)
    } is: {
      $0 > 0
    }
  }

  private func logBytes(_ server: TestServer) throws -> Int {
    let store = try Store.openBlocking(
      at: server.directory + "/notes.tidemark",
      configuration: Store.Configuration(access: .readOnly))
    defer { try? store.blocking.close() }
    return try store.status.bytes.log
  }

  private func push(_ push: PushRequest, to server: TestServer) async throws {
    guard case .pushAnswer(let answer) = try await server.call(.pushRequest(push)).answer,
      answer.mark.number == push.number,
      answer.mark.verdicts.allSatisfy({ if case .applied = $0 { true } else { false } })
    else { throw Unexpected() }
  }

  /// Writes one key again and again, with values that cannot be compressed to nothing.
  private func writeHotKey(
    _ batches: ClosedRange<UInt64>, of count: UInt64, to server: TestServer
  ) async throws {
    var random = SystemRandomNumberGenerator()
    _ = try await server.call(.helloRequest(HelloRequest(replica: writer)))
    for number in batches {
      let changes = (1...count).map { index in
        let sequence = (number - 1) * count + index
        return PushedChange(
          sequence: sequence, kind: .put, key: Array("hot".utf8),
          content: SyncContent(
            value: (0..<100).map { _ in UInt8.random(in: 0...255, using: &random) }),
          base: sequence == 1 ? .absent : .operation(sequence: sequence - 1),
          commitTime: 1_700_000_000_000 << 16)
      }
      try await push(
        PushRequest(replica: writer, number: number, batchID: BatchID(number), changes: changes),
        to: server)
    }
  }

  @Test("the disk that a key takes which was written 100,000 times comes back by itself")
  func hotKey() async throws {
    try await TestServer.run {
      eager(&$0)
      $0.compaction.leastBytes = 1 << 20
    } _: { server in
      var most = 0
      for part in 0..<10 {
        let first = UInt64(part) * 5 + 1
        try await writeHotKey(first...first + 4, of: 2_000, to: server)
        most = max(most, try logBytes(server))
      }
      // Data that came within the last second goes at one of the next looks.
      try await eventually {
        try logBytes(server)
      } is: {
        $0 < 3 << 20
      }
      #expect(try await metric("compactions_total", of: server) > 0)
      #expect(try await metric("compaction_failures_total", of: server) == 0)
      try await eventually {
        try await metric("compaction_freed_bytes_total", of: server)
      } is: {
        $0 > Double(8 << 20)
      }
      #expect(most > 1 << 20)
    }
  }

  @Test("a live lease keeps deletes, and not the versions around them")
  func lease() async throws {
    try await TestServer.run {
      eager(&$0)
    } _: { server in
      let reader = ReplicaID.test(2)
      for replica in [writer, reader] {
        _ = try await server.call(.helloRequest(HelloRequest(replica: replica)))
      }
      try await push(.puts(["a", "b"], by: .test(1)), to: server)
      var cursor = FeedPosition.beginning
      for _ in 0..<2 {
        let pull = PullRequest(replica: reader, after: cursor)
        guard case .pullAnswer(let page) = try await server.call(.pullRequest(pull)).answer else {
          throw Unexpected()
        }
        cursor = page.cursor
      }
      let delete = PushedChange(
        sequence: 2_000, kind: .delete, key: Array("a".utf8), base: .operation(sequence: 1_000),
        commitTime: 1_700_000_000_000 << 16)
      try await push(
        PushRequest(replica: writer, number: 2, batchID: BatchID(2), changes: [delete]),
        to: server)
      let other = ReplicaID.test(3)
      _ = try await server.call(.helloRequest(HelloRequest(replica: other)))
      for number in UInt64(1)...4 {
        var batch = PushRequest.puts([], by: other, number: number)
        batch.changes = (UInt64(0)..<1_000).map { index in
          let sequence = number * 1_000 + index
          return PushedChange(
            sequence: sequence, kind: .put, key: Array("hot".utf8),
            content: SyncContent(value: Array("\(sequence * 7_919_777_777)".utf8)),
            base: .operation(sequence: sequence - 1), commitTime: 1_700_000_000_000 << 16)
        }
        try await push(batch, to: server)
        try await Task.sleep(for: .milliseconds(1_100))
      }
      try await awaitCompaction(on: server)
      try await eventually {
        let pull = PullRequest(replica: reader, after: cursor)
        guard case .pullAnswer(let page) = try await server.call(.pullRequest(pull)).answer else {
          throw Unexpected()
        }
        #expect(page.entries.first?.kind == .delete)
        return page.entries.count
      } is: {
        $0 < 3_500
      }
    }
  }

  @Test("a device behind what is kept compares everything: it converges, and nothing comes back")
  func behind() async throws {
    try await TestServer.run {
      eager(&$0)
      $0.handler.lease = .seconds(3)
      $0.compaction.leastBytes = 8 << 10
    } _: { server in
      let url = "http://127.0.0.1:\(server.port)/notes"
      let stores = try ["one", "two"].map {
        try Store.openBlocking(at: server.directory + "/\($0).device")
      }
      let replicators = try stores.map {
        try $0.replicator(named: "server", peer: try HTTPPeer(url))
      }
      for index in 0..<40 { try await stores[0].put("key/\(index)", "first \(index)") }
      for replicator in replicators { _ = try await replicator.syncOnce(deadline: guardTime) }
      #expect(try stores[1].status.keys == 40)
      try await Task.sleep(for: .milliseconds(3_500))
      // While the second one is away, some of it goes and a lot is written.
      for index in 0..<4 { try await stores[0].delete("key/\(index)") }
      try await stores[1].put("key/3", "edited elsewhere")
      try await stores[1].put("key/20", "edited elsewhere")
      try await stores[1].put("key/50", "new elsewhere")
      _ = try await replicators[0].syncOnce(deadline: guardTime)
      // Deletes of the current second stay, and a compaction may be under way that began in it.
      try await Task.sleep(for: .milliseconds(1_100))
      let done = try await metric("compactions_total", of: server)
      try await eventually {
        for index in 0..<20 {
          try await stores[0].put("key/10", Key((0..<600).map { _ in UInt8.random(in: 0...255) }))
          if index % 4 == 3 { _ = try await replicators[0].syncOnce(deadline: guardTime) }
        }
        return try await metric("compactions_total", of: server)
      } is: {
        $0 > done + 1
      }
      guard
        case .pullAnswer(let page) = try await server.call(
          .pullRequest(PullRequest(replica: .test(9), after: .beginning))
        ).answer
      else { throw Unexpected() }
      try #require(page.range.truncatedThrough > 0, "deletes have gone")
      for _ in 0..<3 {
        for replicator in replicators {
          _ = try await replicator.syncOnce(deadline: guardTime)
        }
      }
      let contents = try stores.map { store in
        var all: [[[UInt8]]] = []
        try store.scan { key, value in
          all.append([key.withUnsafeBytes { Array($0) }, value.withUnsafeBytes { Array($0) }])
        }
        return all
      }
      #expect(contents[0] == contents[1])
      let names = contents[1].map { String(decoding: $0[0], as: UTF8.self) }
      for index in 0..<3 { #expect(!names.contains("key/\(index)")) }
      #expect(contents[0].count == 38)
      for store in stores { try store.blocking.close() }
    }
  }

  @Test("a server that ends while it compacts loses nothing, and ends soon")
  func ending() async throws {
    try await TestServer.inDirectory { directory in
      let keys = (0..<400).map { batch in (0..<50).map { "key/\(batch)/\($0)" } }
      var acknowledged = 0
      var last: [UInt64: Int] = [:]
      for round in UInt64(0)..<4 {
        try await TestServer.run(in: directory) {
          eager(&$0)
          $0.compaction.interval = .milliseconds(1)
          $0.compaction.leastBytes = 1
          $0.compaction.leastPercent = 0
        } _: { server in
          let replica = ReplicaID.test(UInt8(round + 1))
          _ = try await server.call(.helloRequest(HelloRequest(replica: replica)))
          var isCompacting = false
          for (number, names) in keys.enumerated() where number < 10 || !isCompacting {
            var batch = PushRequest.puts(names, by: replica, number: UInt64(number + 1))
            for index in batch.changes.indices {
              batch.changes[index].key += Array("/\(round)".utf8)
              batch.changes[index].content.value = (0..<1_000).map { _ in
                UInt8.random(in: 0...255)
              }
            }
            // One that is written anew each time, so that there is something to give back.
            var hot = PushedChange(
              sequence: UInt64(number + 1) * 1_000 + 999, kind: .put, key: [UInt8(round)],
              commitTime: 1_700_000_000_000 << 16)
            hot.base = number == 0 ? .absent : .operation(sequence: UInt64(number) * 1_000 + 999)
            hot.content.value = Array("\(number)".utf8)
            batch.changes.append(hot)
            try await push(batch, to: server)
            acknowledged += names.count
            last[round] = number
            isCompacting = try await metric("running_compactions", of: server) > 0
          }
          #expect(isCompacting)
        }
        let store = try Store.openBlocking(
          at: directory + "/notes.tidemark", configuration: Store.Configuration(access: .write))
        var read = 0
        var hot: [UInt64: Int] = [:]
        try store.scan { key, value in
          let bytes = value.withUnsafeBytes { Array($0) }
          guard key.byteCount == 1 else { return read += bytes.count }
          let round = key.withUnsafeBytes { UInt64($0[0]) }
          hot[round] = Int(String(decoding: bytes, as: UTF8.self))
        }
        #expect(read == 1_000 * acknowledged && hot == last)
        try store.blocking.close()
      }
    }
  }

  @Test("a database that is not open is looked at, too")
  func closed() async throws {
    try await TestServer.inDirectory { directory in
      try await TestServer.run(in: directory) {
        $0.compaction.interval = .zero
      } _: { server in
        try await writeHotKey(1...4, of: 1_000, to: server)
        #expect(try await metric("compactions_total", of: server) == 0)
      }
      try await Task.sleep(for: .milliseconds(1_100))
      try await TestServer.run(in: directory) {
        eager(&$0)
      } _: { server in
        try await awaitCompaction(on: server)
        #expect(try logBytes(server) < 64 << 10)
      }
    }
  }
}
