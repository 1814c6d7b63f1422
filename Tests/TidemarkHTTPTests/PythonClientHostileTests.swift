import Testing
import TidemarkSync
import TidemarkSyncTestKit

@Suite(
  "Misbehaviour of a server towards the client in Python",
  .enabled(if: PythonClient.canRun, "there is no python3"), .timeLimit(.minutes(20)))
struct PythonClientHostileTests {
  struct Answer: Sendable, CustomTestStringConvertible {
    var status = 200
    var body: String
    /// The exit status that the client ends with.
    var ends: Int32
    var type = "application/json"

    var testDescription: String { "\(status) \(body.prefix(40))" }
  }

  private static func error(_ kind: String, ends: Int32) -> Answer {
    Answer(
      status: 500, body: #"{"type":"error","kind":"\#(kind)","message":"a\u001b[31m\nb"}"#,
      ends: ends)
  }

  private static let deep =
    #"{"type":"hello_answer","x":"# + String(repeating: "[", count: 200_000) + "}"

  static let answers = [
    Answer(status: 502, body: "<html>Bad gateway</html>", ends: 69, type: "text/html"),
    Answer(status: 401, body: "<html>Sign in</html>", ends: 69, type: "text/html"),
    Answer(status: 403, body: "<html>Forbidden</html>", ends: 1, type: "text/html"),
    Answer(status: 404, body: "<html>Not found</html>", ends: 1, type: "text/html"),
    Answer(body: "<html>Sign in</html>", ends: 69, type: "text/html"),
    Answer(body: "<html>Sign in</html>", ends: 76),
    Answer(body: "[]", ends: 76), Answer(body: "{\"type\":3}", ends: 76),
    Answer(body: deep, ends: 76), Answer(body: "{\"type\":\"hello_answer\"}", ends: 76),
    Answer(body: "{\"type\":\"hello_answer\",\"type\":\"hello_answer\"}", ends: 76),
    Answer(body: "{\"type\":\"pull_answer\"}", ends: 76),
    Answer(
      body: "{\"type\":\"hello_answer\",\"feed\":\"" + String(repeating: "0", count: 5000) + "\"}",
      ends: 76),
    error("unavailable", ends: 69), error("busy", ends: 69), error("unauthorized", ends: 77),
    error("forbidden", ends: 77), error("cursor_gone", ends: 3), error("lease_expired", ends: 3),
    error("malformed", ends: 1), error("failed", ends: 1), error("of another time", ends: 1),
  ]

  @Test("every answer that is none ends with one line and its status", arguments: answers)
  func hello(answer: Answer) async throws {
    let server = try SocketServer { _, connection in
      connection.answer(answer.status, Array(answer.body.utf8), type: answer.type)
    }
    defer { server.stop() }
    let client = try await PythonClient(of: server.url)
    try await client.run("put", "a", "1")
    let ended = try await client.run("--attempts", "1", "push")
    #expect(ended.status == answer.ends, "\(ended.talk)")
    #expect(ended.talk.count == 1 && ended.talk[0].hasPrefix("sync-client: "))
    #expect(!ended.talk[0].contains("\u{1b}"))
    #expect(try await client.run("status").output.hasPrefix("1 pending, 0 in flight, "))
  }

  @Test("a pull that cannot be right is not taken, and the cursor stays")
  func pull() async throws {
    let memory = try MemoryPeer()
    let routes = SyncRoutes(memory.handler)
    let range = #""range":{"epochs":[{"epoch":"00000000000000aa","first":1}],"head":9}"#
    let mark = #""mark":{"number":0,"batch":"0000000000000000","verdicts":[]}"#
    let operation = #""op_id":"00112233445566778899aabbccddeeff.1""#
    let bodies = [
      #""cursor":"0000000000000000-0","entries":[]"#, #""cursor":"aa-9","entries":[]"#,
      #""cursor":"00000000000000aa-9","entries":[{}]"#,
      #""cursor":"00000000000000aa-9","entries":[{"op":"put","position":"00000000000000aa-9","#
        + operation + #","key":"k","value_base64":"?"}]"#,
      #""cursor":"00000000000000aa-9","entries":[{"op":"put","position":"00000000000000aa-9","#
        + operation + #","key":"","key_base64":"","value":"v"}]"#,
    ]
    for body in bodies {
      let server = try SocketServer { request, connection in
        guard request.path.hasSuffix("/pull") else { return routes.serve(request, connection) }
        let text = #"{"type":"pull_answer",\#(range),\#(mark),\#(body)}"#
        return connection.answer(200, Array(text.utf8), type: "application/json")
      }
      let client = try await PythonClient(of: "\(server.url)/notes")
      let ended = try await client.run("--attempts", "1", "pull")
      #expect(ended.status == 76 && ended.talk.count == 1, "\(body): \(ended.talk)")
      #expect(try await client.run("list").output.isEmpty)
      #expect(try await client.run("status").output.hasSuffix(" 0000000000000000-0"))
      server.stop()
    }
  }
}
