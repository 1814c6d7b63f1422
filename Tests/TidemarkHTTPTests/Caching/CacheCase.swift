import Testing
import Tidemark
import TidemarkEngine
import TidemarkHTTP
import TidemarkTestKit

@testable import TidemarkHTTPCache

/// A case of the rules of HTTP caches: what a server says, and what the cache makes of it.
struct CacheCase: Sendable, CustomTestStringConvertible {
  /// Where the rule stands, such as `9111 5.2.2.1`.
  let section: String
  let name: String
  let steps: [CacheStep]

  init(_ section: String, _ name: String, _ steps: CacheStep...) {
    self.section = section
    self.name = name
    self.steps = steps
  }

  var testDescription: String { "\(name) (\(section))" }
}

/// A step of a ``CacheCase``.
enum CacheStep: Sendable {
  /// The server's next answer; its body is the number of the answer unless it says otherwise.
  case say(Said)
  /// A request: what it gets, and whether the server is asked.
  case ask(Asked)
  /// Time passes, in seconds.
  case wait(Int)
  /// The clock is set, in seconds ahead of where it is.
  case jump(Int)
  case offline
  case online
  /// Waits for what is asked behind the reader's back.
  case settle

  struct Asked: Sendable {
    var method = "GET"
    var path = "/a"
    var headers: [String: String] = [:]
    var status: Int
    var body: String
    /// Nil where that is a matter of time.
    var asks: Bool?
    /// Fields that the server must have got; an empty text for one that it must not.
    var sent: [String: String] = [:]
    /// Fields of the answer.
    var gets: [String: String] = [:]
  }

  static func say(
    _ control: String?, _ headers: [String: String] = [:], status: Int = 200, body: String = ""
  ) -> Self {
    var headers = headers
    headers["Cache-Control"] = control
    return .say(Said(status: status, headers: headers, body: body))
  }

  /// The answer comes from the server.
  static func fetch(
    _ body: String, _ headers: [String: String] = [:], status: Int = 200, method: String = "GET",
    path: String = "/a", sent: [String: String] = [:], gets: [String: String] = [:]
  ) -> Self {
    .ask(
      Asked(
        method: method, path: path, headers: headers, status: status, body: body, asks: true,
        sent: sent, gets: gets))
  }

  /// The answer comes from the cache, without asking.
  static func hit(
    _ body: String, _ headers: [String: String] = [:], status: Int = 200, method: String = "GET",
    path: String = "/a", gets: [String: String] = [:]
  ) -> Self {
    .ask(
      Asked(
        method: method, path: path, headers: headers, status: status, body: body, asks: false,
        gets: gets))
  }
}

/// Runs a test with a cache of its own on a simulated disk.
func withCache(
  _ policy: HTTPCachePolicy = HTTPCachePolicy(), _ transport: Transports? = nil,
  _ body: (HTTPCache) async throws -> Void
) async throws {
  let store = try Store.openBlocking(
    at: "store", configuration: Store.Configuration().simulated(on: SimulatedFileSystem(seed: 1)))
  let cache = try HTTPCache(store: store, policy: policy, transport: transport?.make())
  let result = await Result.of { try await body(cache) }
  await cache.close()
  try await store.close()
  try result.get()
}

/// A cache on a simulated disk, before a server behind sockets.
struct CacheBench {
  let clock = ManualClock()
  let origin: ScriptedOrigin
  let store: Store
  let cache: HTTPCache

  init(
    _ policy: HTTPCachePolicy = HTTPCachePolicy(),
    on disk: SimulatedFileSystem = SimulatedFileSystem(seed: 1)
  ) throws {
    origin = try ScriptedOrigin(clock)
    store = try Store.openBlocking(
      at: "store", configuration: Store.Configuration().simulated(on: disk, clock: clock))
    cache = try HTTPCache(store: store, policy: policy)
  }

  func ask(
    _ path: String = "/a", method: String = "GET", _ headers: [String: String] = [:],
    body: String = ""
  ) async throws -> HTTPTransportAnswer {
    try await cache.answer(
      to: HTTPTransportRequest(
        method: method, url: origin.url + path, headers: headers, body: Array(body.utf8)),
      limit: 1 << 26)
  }

  func close() async throws {
    await cache.close()
    origin.stop()
    try await store.close()
  }

  func run(_ steps: [CacheStep]) async throws {
    var answers = 0
    for (number, step) in steps.enumerated() {
      switch step {
      case .say(var said):
        answers += 1
        if said.body.isEmpty { said.body = "\(answers)" }
        for (name, value) in said.headers {
          said.headers[name] = value.replacingFirst("ORIGIN", with: origin.url)
        }
        origin.say(said)
      case .wait(let seconds): clock.advance(by: .seconds(seconds))
      case .jump(let seconds): clock.jump(by: .seconds(seconds))
      case .offline: cache.isOffline = true
      case .online: cache.isOffline = false
      case .settle: await cache.waitForRefreshes()
      case .ask(let asked): try await run(asked, number)
      }
    }
    #expect(origin.unsaid == 0, "the server was asked less often than expected")
  }

  private func run(_ asked: CacheStep.Asked, _ number: Int) async throws {
    let before = origin.received.count
    let answer: HTTPTransportAnswer
    do { answer = try await ask(asked.path, method: asked.method, asked.headers) } catch {
      #expect(asked.status == 0, "step \(number): \(error)")
      return
    }
    #expect(answer.status == asked.status, "step \(number)")
    if answer.status != 504, asked.body != "*" {
      #expect(String(decoding: answer.body, as: UTF8.self) == asked.body, "step \(number)")
    }
    let received = origin.received.dropFirst(before)
    if let asks = asked.asks {
      #expect(!received.isEmpty == asks, "step \(number): whether the server was asked")
    }
    for (name, value) in asked.sent {
      #expect(received.last?.headers[name] ?? "" == value, "step \(number): \(name)")
    }
    for (name, value) in asked.gets {
      #expect(answer.headers[name] ?? "" == value, "step \(number): \(name)")
    }
  }
}

extension String {
  fileprivate func replacingFirst(_ text: String, with other: String) -> String {
    guard hasPrefix(text) else { return self }
    return other + dropFirst(text.count)
  }
}
