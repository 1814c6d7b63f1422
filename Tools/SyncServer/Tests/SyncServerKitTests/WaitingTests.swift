import Synchronization
import Testing
import TidemarkSyncServer

@testable import SyncServerKit

@Suite("Waiting", .timeLimit(.minutes(20)))
struct WaitingTests {
  private final class Answers: Sendable {
    let count = Atomic(0)
  }

  private let writer = ReplicaID.test(1)
  private let pull = WireMessage.pullRequest(
    PullRequest(replica: .test(2), after: .beginning, waitMilliseconds: 600_000))

  private func greet(_ server: TestServer) async throws {
    let hello = WireMessage.helloRequest(HelloRequest(replica: writer))
    #expect(try await server.call(hello).status == 200)
  }

  /// Everything that the feed has must be pulled before a pull waits: the records of leases.
  private func metric(_ name: String, of server: TestServer) async throws -> String? {
    let text = try await server.request("GET", "/metrics").text
    return text.split(separator: "\n").first { $0.hasPrefix("tidemark_\(name) ") }
      .map { String($0.split(separator: " ")[1]) }
  }

  @Test("a pull waits until there is something")
  func waits() async throws {
    try await TestServer.run { server in
      try await greet(server)
      async let page = server.call(pull)
      try await eventually {
        try await metric("waiting_pulls", of: server)
      } is: {
        $0 == "1"
      }
      _ = try await server.call(.pushRequest(.puts(["a"], by: writer)))
      guard case .pullAnswer(let answer) = try await page.answer else { throw Unexpected() }
      #expect(answer.entries.map(\.key) == [[97]])
    }
  }

  @Test("more callers can wait than databases may be open, each for a database of its own")
  func manyDatabases() async throws {
    try await TestServer.run {
      $0.limits.openDatabases = 2
    } _: { server in
      let names = (1...6).map { "user\($0)" }
      let hello = WireMessage.helloRequest(HelloRequest(replica: writer))
      for name in names { #expect(try await server.call(hello, in: name).status == 200) }
      let answered = Answers()
      try await withThrowingTaskGroup(of: Int.self) { waiting in
        for (index, name) in names.enumerated() {
          waiting.addTask {
            var (status, page) = try await server.call(pull, in: name)
            // More than may be open at a time are looked at, if they all come together.
            while status == 503 {
              try await Task.sleep(for: .milliseconds(20))
              (status, page) = try await server.call(pull, in: name)
            }
            answered.count.add(1, ordering: .relaxed)
            guard case .pullAnswer(let answer) = page else { return status }
            #expect(answer.entries.map(\.key) == [Array("key \(index)".utf8)])
            return status
          }
        }
        try await eventually {
          try await metric("waiting_pulls", of: server)
        } is: {
          $0 == "6" || answered.count.load(ordering: .relaxed) > 0
        }
        try #require(answered.count.load(ordering: .relaxed) == 0, "one was refused")
        // Four of the databases are closed by now; whoever writes to one opens it.
        for (index, name) in names.enumerated() {
          let push = WireMessage.pushRequest(.puts(["key \(index)"], by: writer))
          var status = 503
          // Both places may be taken by those whose databases are being looked at.
          while status == 503 {
            status = try await server.call(push, in: name).status
            if status == 503 { try await Task.sleep(for: .milliseconds(20)) }
          }
          #expect(status == 200)
        }
        for try await status in waiting { #expect(status == 200) }
      }
    }
  }

  @Test("hundreds that wait for one database all hear of a push, a slice at a time")
  func manyListeners() async throws {
    let count = 300
    try await TestServer.run {
      $0.limits.threads = 2
      $0.limits.queuedCalls = 16
      $0.limits.wokenAtOnce = 7
      $0.limits.waiting = count
      $0.limits.waitingPerCaller = count
      $0.limits.connections = count + 50
      $0.limits.connectionsPerAddress = count + 50
      $0.limits.requestsPerSecond = 0
      // Searches in vain are not counted here.
      $0.limits.searchShare = 0
    } _: { server in
      try await greet(server)
      try await withThrowingTaskGroup(of: Int.self) { waiting in
        for index in 0..<count {
          waiting.addTask {
            let bytes = (0..<16).map { UInt8(truncatingIfNeeded: (index + 1) >> (8 * ($0 % 2))) }
            let replica = try #require(ReplicaID(bytes))
            let pull = WireMessage.pullRequest(
              PullRequest(replica: replica, after: .beginning, waitMilliseconds: 600_000))
            var (status, page) = try await server.call(pull)
            // Two threads cannot take so many that come at the same time.
            while status == 429 {
              try await Task.sleep(for: .milliseconds(20))
              (status, page) = try await server.call(pull)
            }
            guard case .pullAnswer(let answer) = page else { return status }
            #expect(answer.entries.count == 1)
            return status
          }
        }
        try await eventually {
          try await metric("waiting_pulls", of: server)
        } is: {
          $0 == "\(count)"
        }
        _ = try await server.call(.pushRequest(.puts(["a"], by: writer)))
        for try await status in waiting { #expect(status == 200) }
      }
    }
  }

  @Test("a caller that waits again does not open its database, and hears of what comes to it")
  func waitsAgain() async throws {
    try await TestServer.run {
      $0.limits.openDatabases = 1
      $0.limits.wait = .milliseconds(50)
    } _: { server in
      try await greet(server)
      var pull = PullRequest(replica: .test(2), after: .beginning, waitMilliseconds: 30_000)
      func wait() async throws -> PullAnswer {
        guard case .pullAnswer(let answer) = try await server.call(.pullRequest(pull)).answer else {
          throw Unexpected()
        }
        pull.after = answer.cursor
        return answer
      }
      for _ in 0..<2 { #expect(try await wait().entries.isEmpty) }
      // Another database takes the place of the one that is waited for.
      let hello = WireMessage.helloRequest(HelloRequest(replica: writer))
      #expect(try await server.call(hello, in: "other").status == 200)
      let databases = server.server.service.databases
      #expect(databases.openNames.map(\.description) == ["other"])
      for _ in 0..<3 {
        #expect(try await wait().entries.isEmpty)
        #expect(databases.openNames.map(\.description) == ["other"])
      }
      _ = try await server.call(.pushRequest(.puts(["a"], by: writer)))
      #expect(try await wait().entries.map(\.key) == [[97]])
    }
  }

  @Test("a caller that hangs up waits no more")
  func hangsUp() async throws {
    try await TestServer.run { server in
      try await greet(server)
      try await RawConnection.open(to: server.port) { connection in
        let body = try WireCoder().encode(pull)
        try await connection.request(
          "POST", "/notes/v1/pull", [("Content-Type", WireFrame.contentType)], body: body)
        try await eventually {
          try await metric("waiting_pulls", of: server)
        } is: {
          $0 == "1"
        }
      }
      try await eventually {
        try await metric("waiting_pulls", of: server)
      } is: {
        $0 == "0"
      }
    }
  }

  @Test("callers that wait are answered at once when the server ends")
  func ends() async throws {
    try await TestServer.run { server in
      try await greet(server)
      async let page = server.call(pull)
      try await eventually {
        try await metric("waiting_pulls", of: server)
      } is: {
        $0 == "1"
      }
      await server.shutDown()
      let (status, answer) = try await page
      guard case .pullAnswer(let page) = answer else { throw Unexpected() }
      #expect(status == 200 && page.entries.isEmpty)
    }
  }
}
