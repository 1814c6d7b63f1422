import Tidemark
import TidemarkHTTP
import TidemarkHTTPCache
import TidemarkSync
import TidemarkTestKit

/// Requests through an HTTP cache, one after the other, each answer compared with what RFC 9111
/// allows.
final class RuleTrial {
  private var chance: SeededGenerator
  private let clock = ManualClock()
  private let store: Store
  private let origin: HTTPOrigin
  private let cache: HTTPCache
  private var model = RuleModel()
  /// Tags that the origin has told last.
  private var tags: [String] = []
  private var log: [String] = []
  private var counts: [String: Int] = [:]

  init(_ seeded: SeededGenerator) throws {
    var chance = seeded
    let disk = SimulatedFileSystem(seed: chance.next())
    store = try Store.openBlocking(
      at: "store", configuration: Store.Configuration().simulated(on: disk, clock: clock))
    origin = HTTPOrigin(SeededGenerator(seed: chance.next()), clock: clock)
    cache = try HTTPCache(store: store, transport: OriginTransport(origin: origin))
    self.chance = chance
  }

  private var now: Int64 { clock.now().milliseconds / 1000 }

  func run(_ steps: Int) async throws -> [String: Int] {
    for _ in 0..<steps { try await step() }
    await cache.close()
    try await store.close()
    return counts
  }

  private func count(_ event: String) { counts[event, default: 0] += 1 }

  private func fail(_ message: String) -> CacheViolation { CacheViolation(message, after: log) }

  private func step() async throws {
    let path = chance.pick(["/a", "/b"]) ?? "/a"
    if cache.isOffline, chance.chance(0.3) {
      cache.isOffline = false
      log.append("online")
    }
    switch chance.int(below: 20) {
    case 0..<4:
      let seconds = chance.pick([1, 3, 10, 40]) ?? 1
      clock.advance(by: .seconds(seconds))
      log.append("\(seconds) s pass")
    case 4, 5:
      await origin.change(path)
      log.append("\(path) changes")
    case 6:
      cache.isOffline = true
      log.append("offline")
    case 7:
      let moods: [HTTPOrigin.Mood] = [
        .failing(500), .failing(503), .failing(401), .failing(403), .failing(404), .failing(302),
        .silent, .cutOff,
      ]
      let mood = chance.pick(moods) ?? .silent
      await origin.set(mood)
      log.append("the origin is \(mood)")
    case 8: try await send(path)
    default: try await read(path)
    }
  }

  /// A request that changes something.
  private func send(_ path: String) async throws {
    let method = chance.pick(["POST", "PUT", "DELETE", "PATCH"]) ?? "POST"
    let answer = try? await cache.answer(
      to: HTTPTransportRequest(method: method, url: HTTPOrigin.address + path), limit: 1 << 20)
    log.append("\(method) \(path): \(answer?.status ?? 0)")
    for exchange in await origin.take() where (200..<400).contains(exchange.answer.status) {
      model.void(path)
      if let location = exchange.answer.headers["location"] {
        model.void(Self.resolved(location, path))
      }
      count("void")
    }
  }

  private static func resolved(_ location: String, _ path: String) -> String {
    if location.hasPrefix("/") { return location }
    return location.hasPrefix("?") ? path + location : "/" + location
  }

  private func request(_ path: String) -> HTTPTransportRequest {
    var headers: [String: String] = [:]
    if chance.chance(0.7) { headers["accept-language"] = chance.pick(HTTPOrigin.languages) }
    if chance.chance(0.2) { headers["accept-encoding"] = chance.pick(["gzip", "br"]) }
    if chance.chance(0.15) {
      headers["cache-control"] = chance.pick([
        "no-cache", "no-store", "max-age=3", "max-stale", "max-stale=20", "only-if-cached",
        "stale-if-error=30",
      ])
    }
    let method = chance.chance(0.12) ? "HEAD" : "GET"
    if method == "GET", chance.chance(0.25) {
      headers["range"] = chance.pick([
        "bytes=0-9", "bytes=10-", "bytes=-30", "bytes=40-59", "bytes=60-999", "bytes=900-",
      ])
      if let tag = tags.last, chance.chance(0.3) { headers["if-range"] = tag }
    }
    return HTTPTransportRequest(method: method, url: HTTPOrigin.address + path, headers: headers)
  }

  private func read(_ path: String) async throws {
    let request = request(path)
    let fields = request.headers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    var line = "\(request.method) \(path) [\(fields.joined(separator: "; "))]"
    let needless = !cache.isOffline && model.isPlainlyFresh(path, request.headers, at: now)
    let answer: HTTPTransportAnswer?
    do { answer = try await cache.answer(to: request, limit: 1 << 20) } catch is PeerError {
      answer = nil
    }
    let exchanges = await origin.take()
    line += " -> " + Self.text(answer)
    for exchange in exchanges {
      line += " (origin: \(Self.text(exchange.answer))\(exchange.isCutOff ? " cut off" : ""))"
    }
    log.append(line)
    if exchanges.isEmpty {
      try judge(answer, request, path, cache.isOffline ? .unreachable : .none)
      return
    }
    if needless { throw fail("the origin was asked though its last answer is fresh") }
    for exchange in exchanges.dropLast() { take(exchange, path) }
    guard let last = exchanges.last else { return }
    try judge(answer, upon: last, path)
    // An error that the reader was spared is not kept.
    if last.answer.status < 500 || last.answer.status == answer?.status { take(last, path) }
  }

  private static func text(_ answer: HTTPTransportAnswer?) -> String {
    guard let answer else { return "failed" }
    let fields = answer.headers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    let body = String(decoding: answer.body.prefix(24), as: UTF8.self)
    return "\(answer.status) \"\(body)\" \(answer.body.count) [\(fields.joined(separator: "; "))]"
  }

  // MARK: Judging

  /// An answer for which the origin was not asked, or has failed.
  private func judge(
    _ answer: HTTPTransportAnswer?, _ request: HTTPTransportRequest, _ path: String,
    _ need: RuleModel.Need
  ) throws {
    guard let answer else {
      if need == .none { throw fail("the request failed, and nobody was asked") }
      return
    }
    if answer.status == 504, answer.body.isEmpty { return count("refused") }
    let all = model.responses[path] ?? []
    let candidates = all.filter { request.method == "HEAD" || Self.gives(answer, $0.body) }
    var objections: [String] = []
    for response in candidates {
      guard
        let objection = RuleModel.objection(to: response, for: request.headers, at: now, need)
      else { return count(need == .none ? "hit" : "stale") }
      objections.append(objection)
    }
    throw fail(
      "an answer came from the cache that must not: "
        + (objections.first ?? "nothing of the kind may be stored"))
  }

  /// An answer for which the origin was asked.
  private func judge(
    _ answer: HTTPTransportAnswer?, upon exchange: HTTPOrigin.Exchange, _ path: String
  ) throws {
    let said = exchange.answer
    if exchange.isCutOff {
      guard said.status == 0, let answer else { return count("cut off") }
      return try judge(answer, exchange.request, path, .unreachable)
    }
    guard let answer else { throw fail("the origin has answered, and the request failed") }
    if said.status == 304 {
      guard Self.gives(answer, exchange.content) else {
        throw fail("a 304 was answered with another content")
      }
      return count("validated")
    }
    if answer.status == said.status, answer.body == said.body { return count("passed") }
    // Parts may have been put together, of one content only.
    if said.status == 206, Self.gives(answer, exchange.content) { return count("completed") }
    guard said.status >= 500 else { throw fail("the origin's answer was not handed on") }
    try judge(answer, exchange.request, path, .failing)
  }

  private static func gives(_ answer: HTTPTransportAnswer, _ content: [UInt8]) -> Bool {
    HTTPDates.gives(answer.status, answer.body, answer.headers["content-range"], of: content)
  }

  /// Changes the model by an exchange.
  private func take(_ exchange: HTTPOrigin.Exchange, _ path: String) {
    let (request, answer) = (exchange.request.headers, exchange.answer)
    let conditions = ["if-none-match", "if-modified-since", "range", "if-range"]
    let asked = request.filter { !conditions.contains($0.key) }
    if let tag = answer.headers["etag"] { tags = tags.suffix(3) + [tag] }
    if exchange.isCutOff {
      // Its beginning may be kept as a part.
      guard exchange.request.method == "GET", [200, 206].contains(answer.status) else { return }
      return model.stored(answer, exchange.content, path, asked, at: now, isPart: true)
    }
    switch answer.status {
    case 304:
      model.validated(answer, exchange.content, path, asked, at: now)
    case 200 where exchange.request.method == "HEAD":
      model.described(answer, path, asked, at: now)
    case _ where exchange.request.method == "HEAD": model.refused(path)
    default:
      let isPart = answer.status == 206
      model.stored(
        answer, isPart ? exchange.content : answer.body, path, asked, at: now, isPart: isPart)
    }
  }
}
