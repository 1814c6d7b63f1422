import Tidemark
import TidemarkHTTP
import TidemarkSync
import TidemarkTestKit

/// A server of a few resources, some of which differ by language, whose answers have random fields.
///
/// It shares no code with the cache: it says what it likes, and is right about what a resource is.
actor HTTPOrigin {
  /// A request and the answer that it got.
  struct Exchange: Sendable {
    let request: HTTPTransportRequest
    /// Status 0 where none came.
    let answer: HTTPTransportAnswer
    /// The content that the request was for.
    let content: [UInt8]
    /// Whether the answer ends before its time.
    let isCutOff: Bool
  }

  /// The fate of the next answer.
  enum Mood: Sendable {
    case willing, failing(Int), silent, cutOff
  }

  static let address = "http://origin.test"
  static let languages = ["en", "fr"]

  private var chance: SeededGenerator
  private let clock: ManualClock
  private var versions: [String: Int] = [:]
  private var exchanges: [Exchange] = []
  var mood = Mood.willing

  init(_ chance: SeededGenerator, clock: ManualClock) {
    self.chance = chance
    self.clock = clock
  }

  func set(_ mood: Mood) { self.mood = mood }

  /// Gives a resource another content.
  func change(_ path: String) { versions[path, default: 1] += 1 }

  /// The exchanges since the last call.
  func take() -> [Exchange] {
    defer { exchanges = [] }
    return exchanges
  }

  /// The name of what a resource is for a request, which is its tag.
  private func name(_ path: String, _ headers: [String: String]) -> String {
    "\(path) \(language(headers)) \(versions[path, default: 1])"
  }

  /// The content of that name, any three bytes of which tell where they are from.
  private static func content(_ name: String) -> [UInt8] {
    (0..<9).flatMap { Array("\(name) part \($0)|".utf8) }
  }

  private func language(_ headers: [String: String]) -> String {
    headers["accept-language"] ?? "en"
  }

  private var now: Int64 { clock.now().milliseconds / 1000 }

  // MARK: Answers

  func answer(_ request: HTTPTransportRequest) -> (HTTPTransportAnswer, cutOff: Bool) {
    let path = String(request.url.dropFirst(Self.address.count))
    defer { mood = .willing }
    var answer = HTTPTransportAnswer(status: 0)
    var isCutOff = false
    switch mood {
    case .silent: isCutOff = true
    case .failing(let status): answer = HTTPTransportAnswer(status: status, headers: fields())
    case .willing, .cutOff:
      if case .cutOff = mood { isCutOff = true }
      answer = reply(request, path)
    }
    let content = Self.content(name(path, request.headers))
    exchanges.append(
      Exchange(request: request, answer: answer, content: content, isCutOff: isCutOff))
    return (answer, isCutOff)
  }

  private func reply(_ request: HTTPTransportRequest, _ path: String) -> HTTPTransportAnswer {
    guard request.method == "GET" || request.method == "HEAD" else {
      change(path)
      var headers = ["date": HTTPDates.text(now)]
      if chance.chance(0.3) { headers["location"] = chance.pick(["/b", "b", "?x", "/a"]) }
      let status = chance.pick([200, 201, 204, 303, 404]) ?? 200
      return HTTPTransportAnswer(status: status, headers: headers)
    }
    let name = name(path, request.headers)
    let content = Self.content(name)
    let tag = tag(of: name)
    var headers = fields()
    if chance.chance(0.8) { headers["etag"] = tag }
    let asked = request.headers["if-none-match"].map { HTTPDates.tags($0) } ?? []
    if request.method == "GET", asked.contains(HTTPDates.opaque(tag)) {
      return HTTPTransportAnswer(status: 304, headers: headers)
    }
    if request.method == "GET", let range = request.headers["range"], chance.chance(0.9),
      request.headers["if-range"].map({ $0 == tag && $0.hasPrefix("\"") }) ?? true
    {
      return part(of: content, range, headers)
    }
    if chance.chance(0.5) { headers["content-length"] = "\(content.count)" }
    let body = request.method == "HEAD" ? [] : content
    return HTTPTransportAnswer(status: 200, headers: headers, body: body)
  }

  /// RFC 9110, 14.
  private func part(
    of content: [UInt8], _ range: String, _ fields: [String: String]
  ) -> HTTPTransportAnswer {
    var headers = fields
    guard let range = HTTPDates.range(range, of: content.count) else {
      headers["content-range"] = "bytes */\(content.count)"
      return HTTPTransportAnswer(status: 416, headers: headers)
    }
    headers["content-range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.count)"
    return HTTPTransportAnswer(status: 206, headers: headers, body: Array(content[range]))
  }

  /// A content keeps its tag, which is weak for every third version.
  private func tag(of content: String) -> String {
    let tag = "\"\(content)\""
    return content.utf8.last.map { $0 % 3 == 0 } == true ? "W/" + tag : tag
  }

  /// Fields that say how an answer may be stored and used.
  private func fields() -> [String: String] {
    var headers: [String: String] = [:]
    if chance.chance(0.8) { headers["date"] = HTTPDates.text(now - Int64(chance.int(below: 8))) }
    if chance.chance(0.2) { headers["age"] = "\(chance.int(below: 40))" }
    var control: [String] = []
    if chance.chance(0.7) { control.append("max-age=\(chance.pick([0, 5, 30, 100]) ?? 0)") }
    for directive in ["no-store", "no-cache", "must-revalidate", "private", "public"]
    where chance.chance(0.1) { control.append(directive) }
    if chance.chance(0.1) { control.append("stale-if-error=\(chance.int(below: 60))") }
    if !control.isEmpty { headers["cache-control"] = control.joined(separator: ", ") }
    if chance.chance(0.3) {
      headers["expires"] = HTTPDates.text(now + Int64(chance.int(below: 90)) - 20)
    }
    if chance.chance(0.2) { headers["last-modified"] = HTTPDates.text(now - 1_000) }
    if chance.chance(0.4) {
      headers["vary"] = chance.pick([
        "Accept-Language", "accept-encoding", "Accept-Encoding, Accept-Language", "*",
      ])
    }
    return headers
  }
}

/// Carries requests to an ``HTTPOrigin`` in this process.
struct OriginTransport: HTTPTransport {
  let origin: HTTPOrigin

  func stream(
    _ request: HTTPTransportRequest,
    head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
    body: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws {
    let (answer, isCutOff) = await origin.answer(request)
    if answer.status == 0 { throw PeerError(.unavailable, "nothing answers") }
    try head(HTTPTransportAnswer(status: answer.status, headers: answer.headers))
    let middle = answer.body.count / 2
    if middle > 0 { try body(Array(answer.body[..<middle])) }
    if isCutOff { throw PeerError(.unavailable, "the connection broke") }
    if middle < answer.body.count { try body(Array(answer.body[middle...])) }
  }

  func close() async {}
}
