import Testing
import Tidemark
import TidemarkSyncServer

@testable import SyncServerKit

@Suite("The server's routes")
struct RouteTests {
  private let me = ReplicaID.test(1)

  @Test("every call is answered, in frames and as JSON", arguments: [false, true])
  func calls(asJSON: Bool) async throws {
    try await TestServer.run { server in
      func call(_ message: WireMessage) async throws -> WireMessage {
        let (status, answer) = try await server.call(message, asJSON: asJSON)
        #expect(status == 200)
        return answer
      }
      guard case .helloAnswer(let hello) = try await call(.helloRequest(HelloRequest(replica: me)))
      else { throw Unexpected() }
      #expect(hello.mark.number == 0)
      guard
        case .pushAnswer(let push) = try await call(
          .pushRequest(.puts(["a", "b"], by: me)))
      else { throw Unexpected() }
      #expect(push.mark.number == 1 && push.mark.verdicts.count == 2)
      guard
        case .pullAnswer(let page) = try await call(
          .pullRequest(PullRequest(replica: .test(2), after: .beginning)))
      else { throw Unexpected() }
      #expect(page.entries.map(\.key) == [Array("a".utf8), Array("b".utf8)])
      guard
        case .valuesAnswer(let values) = try await call(
          .valuesRequest(ValuesRequest(replica: me, keys: [Array("b".utf8)])))
      else { throw Unexpected() }
      #expect(values.entries.map(\.content.value) == [Array("value of b".utf8)])
      guard
        case .digestAnswer(let digest) = try await call(
          .digestRequest(DigestRequest(replica: me)))
      else { throw Unexpected() }
      #expect(digest.parts[0].total.keys == 2)
      let value = [UInt8](repeating: 7, count: 300_000)
      guard
        case .attachAnswer(let upload) = try await call(
          .attachRequest(
            AttachRequest(
              replica: me, key: [1],
              attachment: AttachmentReference(
                sha256: [UInt8](repeating: 1, count: 32), length: value.count), offset: 0,
              bytes: Array(value[..<65_536])))),
        case .fetchAnswer(let part) = try await call(
          .fetchRequest(
            ContentRequest(
              replica: me, key: page.entries[0].key,
              attachment: AttachmentReference(
                sha256: [UInt8](repeating: 1, count: 32), length: 10), offset: 9, limit: 100,
              position: page.entries[0].position)))
      else { throw Unexpected() }
      #expect(upload.received == 65_536)
      #expect(part.bytes == Array("a".utf8))
    }
  }

  @Test("the answer comes in the coding that is asked for")
  func accept() async throws {
    try await TestServer.run { server in
      let coder = WireCoder()
      let body = try coder.encode(.helloRequest(HelloRequest(replica: me)))
      let answer = try await server.request(
        "POST", "/notes/v1/hello",
        [("Content-Type", WireFrame.contentType), ("Accept", "application/json")], body: body)
      #expect(answer.status == 200)
      #expect(try coder.decodeJSON(answer.body).kind == .helloAnswer)
    }
  }

  @Test("two databases know nothing of each other, and both are there after a restart")
  func apart() async throws {
    try await TestServer.inDirectory { directory in
      try await TestServer.run(in: directory) { server in
        for name in ["one", "two"] {
          _ = try await server.call(.helloRequest(HelloRequest(replica: me)), in: name)
          let push = PushRequest.puts(["in \(name)"], by: me)
          #expect(try await server.call(.pushRequest(push), in: name).status == 200)
        }
      }
      try await TestServer.run(in: directory) { server in
        let pull = WireMessage.pullRequest(PullRequest(replica: .test(2), after: .beginning))
        for name in ["one", "two"] {
          guard case .pullAnswer(let page) = try await server.call(pull, in: name).answer
          else { throw Unexpected() }
          #expect(page.entries.map(\.key) == [Array("in \(name)".utf8)])
        }
      }
    }
  }

  @Test("databases beyond the number that may be open are closed and opened again")
  func reopened() async throws {
    try await TestServer.run {
      $0.limits.openDatabases = 2
    } _: { server in
      for round in 1...3 {
        for name in ["a", "b", "c", "d"] {
          _ = try await server.call(.helloRequest(HelloRequest(replica: me)), in: name)
          let push = PushRequest.puts(["key"], by: me, number: UInt64(round))
          #expect(try await server.call(.pushRequest(push), in: name).status == 200)
        }
      }
      let metrics = try await server.request("GET", "/metrics").text
      #expect(metrics.contains("tidemark_open_databases 2\n"))
    }
  }

  @Test("a database that cannot be opened fails alone")
  func damaged() async throws {
    try await TestServer.run { server in
      // Another process has it.
      let store = try await Store.open(at: server.directory + "/locked.tidemark")
      let hello = WireMessage.helloRequest(HelloRequest(replica: me))
      let (status, answer) = try await server.call(hello, in: "locked")
      #expect(status == 503 && answer.errorKind == .unavailable)
      #expect(try await server.call(hello, in: "other").status == 200)
      try await store.close()
    }
  }

  @Test("a server that makes no databases says so of those it does not have")
  func unknown() async throws {
    try await TestServer.run {
      $0.createsDatabases = false
    } _: { server in
      let hello = WireMessage.helloRequest(HelloRequest(replica: me))
      let (status, answer) = try await server.call(hello, asJSON: true)
      #expect(status == 404 && answer.errorKind == .forbidden)
    }
  }

  @Test("health tells for a while that the disk fails below a database, and nothing of the server")
  func failingDisk() async throws {
    var error = PeerError(.unavailable, "the server's disk is full")
    error.detail = "the disk is full (in write of /var/lib/tidemark/notes.tidemark/log/1.seg)"
    for (time, status) in [(Duration.seconds(7_200), 503), (.zero, 200)] {
      try await TestServer.run {
        $0.limits.diskFailureTold = time
      } _: { server in
        for kind in [PeerError.Kind.busy, .malformed, .forbidden] {
          server.server.service.note(PeerError(kind, "no failure of a disk"))
        }
        server.server.service.note(PeerError(.unavailable, "too many databases are in use"))
        #expect(try await server.request("GET", "/health").status == 200)
        server.server.service.note(error)
        let answer = try await server.request("GET", "/health")
        #expect(answer.status == status)
        #expect(answer.text.contains("disk") == (status == 503) && !answer.text.contains("/var"))
      }
    }
  }

  @Test("health and metrics are told")
  func pages() async throws {
    try await TestServer.run { server in
      #expect(try await server.request("GET", "/health").status == 200)
      let hello = WireMessage.helloRequest(HelloRequest(replica: me))
      _ = try await server.call(hello)
      _ = try await server.call(.pushRequest(.puts(["a", "b", "c"], by: me)))
      _ = try await server.request("GET", "/nothing")
      let text = try await server.request("GET", "/metrics").text
      #expect(text.contains("tidemark_requests_total{route=\"push\",status=\"200\"} 1\n"))
      #expect(text.contains("tidemark_requests_total{route=\"none\",status=\"404\"} 1\n"))
      #expect(text.contains("tidemark_pushed_entries_total 3\n"))
      #expect(text.contains("tidemark_request_seconds_count{route=\"push\"} 1\n"))
    }
  }
}

struct Unexpected: Error {}

/// Asks until the answer is as it should become. The bound guards against hanging only, and is far
/// beyond what a busy machine takes.
func eventually<T: Sendable>(
  _ ask: () async throws -> T, is fits: (T) -> Bool
) async throws {
  for _ in 0..<15_000 {
    if fits(try await ask()) { return }
    try await Task.sleep(for: .milliseconds(20))
  }
  Issue.record("it did not become so")
}
