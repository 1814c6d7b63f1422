import SyncServerKit
import Testing
import TidemarkSync

@Suite("Waiting", .timeLimit(.minutes(20)))
struct WaitingTests {
  private let writer = ReplicaID.test(1)
  private let pull = WireMessage.pullRequest(
    PullRequest(replica: .test(2), after: .beginning, waitMilliseconds: 30_000))

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

  @Test("when the server ends, those that wait are answered at once, and streams end")
  func ends() async throws {
    try await TestServer.run { server in
      try await greet(server)
      async let page = server.call(pull)
      async let stream = RawConnection.open(to: server.port) { connection in
        try await connection.request("GET", "/notes/v1/events")
        _ = try await connection.read(through: "event: poke")
        return try await connection.read(through: "0\r\n\r\n")
      }
      try await eventually {
        try await metric("waiting_pulls", of: server)
      } is: {
        $0 == "1"
      }
      try await eventually {
        try await metric("event_streams", of: server)
      } is: {
        $0 == "1"
      }
      await server.shutDown()
      let (status, answer) = try await page
      guard case .pullAnswer(let page) = answer else { throw Unexpected() }
      #expect(status == 200 && page.entries.isEmpty)
      _ = try await stream
    }
  }

  @Test("an event stream pokes at its beginning and at every change, and shows that it lives")
  func events() async throws {
    try await TestServer.run {
      $0.heartbeat = .milliseconds(50)
    } _: { server in
      try await greet(server)
      try await RawConnection.open(to: server.port) { connection in
        try await connection.request("GET", "/notes/v1/events?replica=\(writer)")
        let head = try await connection.read(through: "\r\n\r\n").lowercased()
        #expect(head.contains("content-type: text/event-stream"))
        _ = try await connection.read(through: "event: poke\ndata: {}\n\n")
        _ = try await connection.read(through: ": heartbeat\n\n")
        _ = try await server.call(.pushRequest(.puts(["a"], by: writer)))
        _ = try await connection.read(through: "event: poke\ndata: {}\n\n")
      }
    }
  }

  @Test("a replica's new event stream takes the place of its last")
  func oneStream() async throws {
    try await TestServer.run { server in
      try await greet(server)
      try await RawConnection.open(to: server.port) { first in
        var first = first
        try await first.request("GET", "/notes/v1/events?replica=\(writer)")
        _ = try await first.read(through: "event: poke")
        try await RawConnection.open(to: server.port) { second in
          try await second.request("GET", "/notes/v1/events?replica=\(writer)")
          _ = try await second.read(through: "event: poke")
        }
        _ = try await first.read(through: "0\r\n\r\n")
      }
    }
  }
}
