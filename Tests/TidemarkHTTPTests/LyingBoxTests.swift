import Dispatch
import Foundation
import RestExample
import Testing
import Tidemark
import TidemarkEngine
import TidemarkHTTP
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

/// A box between a client and its back end that answers some requests itself.
private final class LyingBox: Sendable {
  enum Lie: CaseIterable {
    case loginPage, redirect, notFound, forbidden, badGateway, emptyObject, nothing, cached
    case truncated, emptyList
  }

  struct State {
    var lies: [Lie] = []
    var generator: SeededGenerator
    /// The percentage of requests that the box answers itself.
    var chance = 0
    var told: Set<String> = []
    /// The last answers of the back end's by method and path without its query.
    var known: [String: HTTPTransportAnswer] = [:]
  }

  let state: Lock<State>
  private let port: Int
  private let transport = PlatformTransport.make()

  init(port: Int, seed: UInt64) {
    self.port = port
    state = Lock(State(generator: SeededGenerator(seed: seed)))
  }

  private static func endpoint(_ request: SocketServer.Request) -> String {
    "\(request.method) \(request.path.split(separator: "?")[0])"
  }

  private func forward(_ request: SocketServer.Request) -> HTTPTransportAnswer? {
    let done = DispatchSemaphore(value: 0)
    let result = Lock<HTTPTransportAnswer?>(nil)
    var sent = HTTPTransportRequest(
      method: request.method, url: "http://127.0.0.1:\(port)\(request.path)",
      headers: request.headers.filter {
        ["content-type", "idempotency-key", "request-id"].contains($0.key)
      })
    sent.body = request.body
    Task { [transport, sent] in
      let answer = try? await transport.answer(to: sent, limit: 1 << 24)
      result.withLock { $0 = answer }
      done.signal()
    }
    done.wait()
    return result.withLock { $0 }
  }

  @Sendable func serve(_ request: SocketServer.Request, _ connection: Connection) -> Bool {
    if request.path == "/login" { return connection.answer(200, page, type: "text/html") }
    let name = Self.endpoint(request)
    let (lie, known) = state.withLock { state in
      let lies = state.lies.isEmpty ? Lie.allCases : state.lies
      let isLie = state.generator.int(below: 100) < state.chance
      let lie = isLie ? lies[state.generator.int(below: lies.count)] : nil
      if let lie { state.told.insert("\(lie) \(request.method)") }
      return (lie, state.known[name])
    }
    // Half of these requests reach the back end, and the box replaces its answer.
    let hasCome = lie == nil || state.withLock { $0.generator.chance(0.5) }
    let answer = hasCome ? forward(request) : nil
    if let answer { state.withLock { $0.known[name] = answer } }
    switch lie {
    case nil:
      guard let answer else { return false }
      return pass(answer, connection)
    case .loginPage: return connection.answer(200, page, type: "text/html")
    case .redirect: return connection.answer(302, headers: ["Location: /login"])
    case .notFound: return connection.answer(404, page, type: "text/html")
    case .forbidden: return connection.answer(403, page, type: "text/html")
    case .badGateway: return connection.answer(502, page, type: "text/html")
    case .emptyObject: return connection.answer(200, Array("{}".utf8), type: "application/json")
    case .nothing: return connection.answer(204, type: "text/plain")
    case .emptyList:
      let text = #"{"changes": [], "token": "0", "more": false, "id": 1}"#
      return connection.answer(201, Array(text.utf8), type: "application/json")
    case .cached: return known.map { pass($0, connection) } ?? false
    case .truncated:
      connection.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
      connection.send("Request-Id: \(request.headers["request-id"] ?? "")\r\n")
      connection.send("Content-Length: 400\r\n\r\n{\"changes\": [")
      return false
    }
  }

  private var page: [UInt8] { Array("<html><form>Please sign in</form></html>".utf8) }

  private func pass(_ answer: HTTPTransportAnswer, _ connection: Connection) -> Bool {
    connection.answer(
      answer.status, answer.body, type: answer.headers["content-type"] ?? "text/plain",
      headers: ["Request-Id: \(answer.headers["request-id"] ?? "")"])
  }
}

@Suite("A back end behind a box that answers itself", .timeLimit(.minutes(20)))
struct LyingBoxTests {
  private final class Device {
    let clock = ManualClock()
    let engine: Engine
    let session: SyncSession
    let peer: RequestPeer

    init(_ peer: RequestPeer, seed: UInt64) throws {
      self.peer = peer
      engine = try Engine.open(
        "/store", configuration: .campaign,
        environment: EngineEnvironment(
          fileSystem: SimulatedFileSystem(seed: seed), clock: clock,
          random: SeededRandom(seed: seed)))
      session = try SyncSession(
        ReplicationLog(engine), name: "rest", capabilities: peer.capabilities)
    }

    func put(_ key: String, _ value: String?) throws {
      var batch = OperationBatch()
      if let value {
        try batch.add(.put, key: Array(key.utf8).rawSpan, value: Array(value.utf8).rawSpan)
      } else {
        try batch.add(.delete, key: Array(key.utf8).rawSpan)
      }
      try engine.commit(batch)
    }

    func get(_ key: String) throws -> String? {
      try engine.reader.withValue(forKey: Array(key.utf8).rawSpan) {
        (value, _) throws(TidemarkError) in
        String(decoding: [UInt8](copying: value), as: UTF8.self)
      }
    }

    /// One round, which the first failure of the back end ends.
    func round() async throws {
      clock.advance(by: .seconds(600))
      session.disconnect()
      do {
        while let call = try session.next() {
          try session.receive(try await peer.answer(to: call))
        }
      } catch let error as PeerError { try session.failed(error) }
    }
  }

  private func script() throws -> (RestScript, URL) {
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("tidemark-box-\(UUID()).jsonl")
    return (try RestScript(file: file), file)
  }

  @Test(
    "nothing is lost and nothing is there twice, whatever the box says",
    arguments: [nil] + LyingBox.Lie.allCases.map { $0 }, [false, true])
  private func holds(lie: LyingBox.Lie?, isNotes: Bool) async throws {
    let seed: UInt64 = 40
    let (script, file) = try script()
    defer {
      script.stop()
      try? FileManager.default.removeItem(at: file)
    }
    let box = LyingBox(port: script.port, seed: seed)
    box.state.withLock { $0.lies = lie.map { [$0] } ?? [] }
    let server = try SocketServer(box.serve)
    defer { server.stop() }
    let transport = PlatformTransport.make()
    func peer() -> RequestPeer {
      isNotes
        ? RestNotes(url: server.url, transport: transport).peer()
        : RestBackEnd(url: server.url, name: "box", transport: transport).peer()
    }
    let (here, there) = (try Device(peer(), seed: 1), try Device(peer(), seed: 2))
    var wanted: [String: String] = [:]
    var generator = SeededGenerator(seed: seed)
    for number in 0..<24 {
      box.state.withLock { $0.chance = 40 }
      let name = "k\(generator.int(below: 8))"
      wanted[name] = generator.chance(0.2) ? nil : "\(number)"
      try here.put(name, wanted[name])
      try await here.round()
      if number % 4 == 0 { try await there.round() }
    }
    box.state.withLock { $0.chance = 0 }
    for _ in 0..<3 {
      try await here.round()
      try await there.round()
    }
    for number in 0..<8 {
      #expect(try here.get("k\(number)") == wanted["k\(number)"], "seed \(seed), \(number)")
    }
    let keys = isNotes ? (1...60).map { "note/\($0)" } : (0..<8).map { "k\($0)" }
    let found = try keys.compactMap { try there.get($0) }
    #expect(found.sorted() == wanted.values.sorted(), "seed \(seed)")
    #expect(here.session.isAtRest && there.session.isAtRest)
    #expect(here.session.totals.parked == 0 && there.session.totals.parked == 0)
    #expect(box.state.withLock { $0.told.count } > 0)
  }
}
