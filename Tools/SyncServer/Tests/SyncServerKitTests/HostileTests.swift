import NIOCore
import Synchronization
import SyncServerKit
import Testing
import TidemarkSyncServer

@Suite("Hostile requests", .timeLimit(.minutes(20)))
struct HostileTests {
  private let frame = [("Content-Type", WireFrame.contentType)]
  private let json = [("Content-Type", "application/json")]

  @Test(
    "a path that is not exactly one of the routes is none",
    arguments: [
      "..", "%2e%2e", "a%2fb", "a/../b", ".", "", "a.b", "a%00", "-a", "_a", "health", "metrics",
      "a b", "é", String(repeating: "a", count: 65),
    ])
  func names(name: String) async throws {
    try await TestServer.run { server in
      let body = try WireCoder().encode(.helloRequest(HelloRequest(replica: .test(1))))
      let answer = try await server.request("POST", "/\(name)/v1/hello", frame, body: body)
      #expect([400, 404].contains(answer.status))
      #expect(try await server.request("GET", "/metrics").text.contains("open_databases 0\n"))
    }
  }

  @Test("a NUL in the path closes the connection or is no route")
  func nul() async throws {
    try await TestServer.run { server in
      let answer = try await server.request("POST", "/a\0b/v1/hello", frame, body: [])
      #expect([400, 404].contains(answer.status))
    }
  }

  @Test("other paths, methods and types of content are refused with their status")
  func refused() async throws {
    try await TestServer.run { server in
      let body = try WireCoder().encode(.helloRequest(HelloRequest(replica: .test(1))))
      #expect(try await server.request("GET", "/a/v1/hello").status == 405)
      #expect(try await server.request("DELETE", "/health").status == 405)
      #expect(try await server.request("POST", "/a/v2/hello", frame, body: body).status == 404)
      #expect(try await server.request("POST", "/a/v1/hello/", frame, body: body).status == 404)
      #expect(try await server.request("POST", "/a/v1/hello", frame).status == 411)
      #expect(try await server.request("POST", "/a/v1/push", frame, body: body).status == 400)
      let types = [[("Content-Type", "text/plain")], [], frame + [("Content-Encoding", "gzip")]]
      for fields in types {
        #expect(try await server.request("POST", "/a/v1/hello", fields, body: body).status == 415)
      }
    }
  }

  @Test("bodies that are cut short, too long or broken are refused")
  func bodies() async throws {
    try await TestServer.run {
      $0.limits.bodyBytes = 100_000
    } _: { server in
      let hello = try WireCoder().encode(.helloRequest(HelloRequest(replica: .test(1))))
      for count in [0, 1, 19, 20, hello.count - 1] {
        let answer = try await server.request(
          "POST", "/a/v1/hello", frame, body: Array(hello.prefix(count)))
        #expect(answer.status == 400)
        #expect(try WireCoder().decode(answer.body).errorKind == .malformed)
      }
      let long = [UInt8](repeating: 0, count: 100_001)
      #expect(try await server.request("POST", "/a/v1/hello", frame, body: long).status == 413)
      let nested = Array(String(repeating: "[", count: 50_000).utf8)
      let answer = try await server.request("POST", "/a/v1/hello", json, body: nested)
      #expect(answer.status == 400)
      #expect(try WireCoder().decodeJSON(answer.body).errorKind == .malformed)
      for length in ["100001", "\(Int.max)", "\(UInt64.max)"] {
        try await RawConnection.open(to: server.port) { connection in
          try await connection.send(
            "POST /a/v1/hello HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
              + "Content-Length: \(length)\r\n\r\n")
          #expect(try await connection.answer().status == 413)
        }
      }
      // The caller promises more than it sends, and says nothing of it at all.
      try await RawConnection.open(to: server.port) { connection in
        try await connection.send(
          "POST /a/v1/hello HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            + "Transfer-Encoding: chunked\r\n\r\n")
        for _ in 0..<101 {
          try await connection.send("3e8\r\n" + String(repeating: " ", count: 1000) + "\r\n")
        }
        #expect(try await connection.answer().status == 413)
      }
      #expect(try await server.request("GET", "/metrics").text.contains("open_databases 0\n"))
    }
  }

  @Test("a small frame that would become a large message is refused before it does")
  func bombs() async throws {
    try await TestServer.run { server in
      let push = PushRequest(
        replica: .test(1), number: 1, batchID: BatchID(1),
        changes: [
          PushedChange(
            sequence: 1, kind: .put, key: [1],
            content: SyncContent(value: [UInt8](repeating: 0, count: 32 << 20)), commitTime: 0)
        ])
      var bomb = try WireCoder(limit: WireFrame.largestLimit).encode(.pushRequest(push))
      #expect(bomb.count < 8192)
      #expect(try await server.request("POST", "/a/v1/push", frame, body: bomb).status == 400)
      // The same, but it lies of its length.
      bomb.replaceSubrange(8..<12, with: [0, 0, 4, 0])
      bomb.replaceSubrange(16..<20, with: [0, 0, 0, 0])
      let sum = CRC32C.checksum(bomb[..<16] + bomb[20...])
      bomb.replaceSubrange(
        16..<20, with: (0..<4).map { UInt8(truncatingIfNeeded: sum >> ($0 * 8)) })
      let answer = try await server.request("POST", "/a/v1/push", frame, body: bomb)
      #expect(answer.status == 400)
      guard case .error(let error) = try WireCoder().decode(answer.body) else {
        throw Unexpected()
      }
      #expect(error.kind == .malformed && !error.message.contains("checksum"))
    }
  }

  @Test("a header that is too long or comes too slowly ends the connection")
  func headers() async throws {
    try await TestServer.run {
      $0.limits.headerTimeout = .milliseconds(200)
    } _: { server in
      try await RawConnection.open(to: server.port) { connection in
        // The connection may have ended before anything is sent.
        try? await connection.send("GET /health HTTP/1.1\r\nX: ")
        try? await connection.send(String(repeating: "x", count: 100_000))
        let answer = try? await connection.answer()
        #expect(answer == nil || answer?.status == 400 || answer?.status == 431)
      }
      try await RawConnection.open(to: server.port) { connection in
        try? await connection.send("GET /health HT")
        #expect(await connection.isClosed())
      }
    }
  }

  @Test("behind a request for another protocol nothing is read, and its answer ends the connection")
  func upgrades() async throws {
    try await TestServer.run {
      $0.limits.idleTimeout = .seconds(3600)
    } _: { server in
      let heads = [
        "GET /health HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n",
        "GET /health HTTP/1.1\r\nUpgrade: websocket\r\nConnection: x, Upgrade\r\n",
        "CONNECT localhost:1 HTTP/1.1\r\n",
        "POST /a/v1/push HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 0\r\n",
      ]
      for head in heads {
        try await RawConnection.open(to: server.port) { connection in
          try await connection.send("\(head)Host: a\r\n\r\n")
          let answer = try await connection.answer()
          #expect(answer.status == (head.hasPrefix("GET") ? 200 : answer.status))
          #expect(await connection.isClosed(), "\(head)")
        }
      }
      // A pull that waits is not answered soon; a thousandth of this fits into the sockets.
      let replica = ReplicaID.test(1)
      _ = try await server.call(.helloRequest(HelloRequest(replica: replica)), in: "a")
      let pull = try WireCoder().encode(
        .pullRequest(PullRequest(replica: replica, after: .beginning, waitMilliseconds: 600_000)))
      try await RawConnection.open(to: server.port) { connection in
        try await connection.request(
          "POST", "/a/v1/pull", frame + [("Connection", "upgrade"), ("Upgrade", "x")], body: pull)
        let channel = connection.channel
        let taken = Counter()
        let piece = ByteBuffer(repeating: 0x78, count: 1 << 20)
        for _ in 0..<1024 {
          channel.writeAndFlush(piece).whenSuccess { taken.add() }
        }
        while try await server.request("GET", "/metrics").text.contains("waiting_pulls 0\n") {
          try await Task.sleep(for: .milliseconds(20))
        }
        try await Task.sleep(for: .milliseconds(500))
        #expect(taken.count < 64)
        try await channel.close()
      }
    }
  }

  @Test("beyond the limit the connection that was idle for longest has to go")
  func idle() async throws {
    try await TestServer.run {
      $0.limits.connections = 4
    } _: { server in
      try await RawConnection.open(to: server.port) { oldest in
        var oldest = oldest
        for _ in 0..<8 {
          #expect(try await server.request("GET", "/health").status == 200)
        }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
          for _ in 0..<8 {
            tasks.addTask {
              try await RawConnection.open(to: server.port) { _ in
                try await Task.sleep(for: .milliseconds(300))
              }
            }
          }
          #expect(await oldest.isClosed())
          try await tasks.waitForAll()
          // Before, newcomers may push out the one that asks, too.
          #expect(try await server.request("GET", "/health").status == 200)
        }
      }
    }
  }

  @Test("a caller that asks too often is told when to come again")
  func rate() async throws {
    try await TestServer.run {
      // Few enough that a busy machine does not come by another one in between.
      $0.limits.requestsPerSecond = 0.001
      $0.limits.requestsAtOnce = 2
    } _: { server in
      let hello = WireMessage.helloRequest(HelloRequest(replica: .test(1)))
      #expect(try await server.call(hello).status == 200)
      #expect(try await server.call(hello).status == 200)
      let (status, answer) = try await server.call(hello)
      guard case .error(let error) = answer else { throw Unexpected() }
      #expect(status == 429 && error.kind == .busy)
      let pause = try #require(error.retryAfter)
      #expect(pause >= .seconds(1) && pause <= .seconds(1_000))
      #expect(try await server.request("GET", "/health").status == 200)
    }
  }
}

/// Counts from any thread.
final class Counter: Sendable {
  private let number = Atomic(0)

  var count: Int { number.load(ordering: .relaxed) }

  func add() { number.add(1, ordering: .relaxed) }
}

/// The checksum of frames, bit by bit.
enum CRC32C {
  static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
    var sum = ~UInt32(0)
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum >> 1 ^ (sum & 1 == 1 ? 0x82f6_3b78 : 0) }
    }
    return ~sum
  }
}
