import Tidemark
import TidemarkHTTP
import TidemarkHTTPCache
import TidemarkSync
import TidemarkTestKit

/// A part of an answer for which a transport waits.
struct AnswerPart: Sendable {
  let path: String
  let isEnd: Bool
}

/// Requests through an HTTP cache whose server answers late, and whatever can be called meanwhile.
///
/// An answer to a question from before the cache was emptied, or its address made void, is never
/// served to somebody who came after that.
final class ExchangeTrial: LateTrial<AnswerPart, String, HTTPTransportAnswer> {
  private struct LateTransport: HTTPTransport {
    let gate: Gate<AnswerPart, String>

    func stream(
      _ request: HTTPTransportRequest,
      head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
      body: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
      let path = String(request.url.dropFirst(HTTPOrigin.address.count))
      let text = try await gate.ask(AnswerPart(path: path, isEnd: false))
      try head(
        HTTPTransportAnswer(
          status: 200, headers: ["cache-control": "max-age=600", "etag": "\"\(text)\""]))
      try body(Array(text.utf8))
      _ = try await gate.ask(AnswerPart(path: path, isEnd: true))
    }

    func close() async {}
  }

  private let cache: HTTPCache
  /// The step in which each question was seen first.
  private var asked: [Int: Int] = [:]

  init(_ seeded: SeededGenerator) throws {
    var chance = seeded
    let (clock, gate) = (ManualClock(), Gate<AnswerPart, String>())
    let store = try Self.makeStore(&chance, clock)
    cache = try HTTPCache(store: store, transport: LateTransport(gate: gate))
    super.init(chance, store, clock, gate)
  }

  override func close() async throws {
    await cache.close()
    try await super.close()
  }

  override func act() async throws {
    let path = chance.pick(["/a", "/b"]) ?? "/a"
    switch chance.int(below: 14) {
    case 0..<5: read(path)
    case 5..<10:
      guard let question = chance.pick(await gate.open) else { return read(path) }
      await answer(question)
    case 10: cancelReader()
    case 11:
      note("removeAll")
      try await cache.removeAll()
      for path in ["/a", "/b"] { said[path] = step }
    case 12:
      note("remove \(path)")
      try await cache.remove(HTTPOrigin.address + path)
      said[path] = step
    default:
      note("removeResponses")
      _ = try await cache.responses.removeAll()
      for path in ["/a", "/b"] { said[path] = step }
    }
  }

  private func read(_ path: String) {
    let asksAnew = chance.chance(0.3)
    let request = HTTPTransportRequest(
      url: HTTPOrigin.address + path, headers: asksAnew ? ["cache-control": "no-cache"] : [:])
    let cache = cache
    begin(path) { try await cache.answer(to: request, limit: 1 << 20) }
    note("read \(path)\(asksAnew ? " anew" : "")")
  }

  override func answer(_ question: Waiting) async {
    note(question.question.isEnd ? "end of \(question.id)" : "head of \(question.id)")
    await gate.answer(question.id, .success("\(question.question.path) #\(question.id)"))
  }

  override func look() async {
    for waiting in await gate.open where asked[waiting.id] == nil { asked[waiting.id] = step }
  }

  override func check(_ answer: HTTPTransportAnswer, _ reader: Reader) throws {
    let text = String(decoding: answer.body, as: UTF8.self)
    guard let mark = text.firstIndex(of: "#"), let id = Int(text[text.index(after: mark)...]),
      text.hasPrefix(reader.key + " ")
    else { throw fail("a reader of \(reader.key) got \(text)") }
    if let time = asked[id], time < reader.saidBefore {
      throw fail(
        "a reader of \(reader.key) got \(text), asked in step \(time), "
          + "though that was made void in step \(reader.saidBefore)")
    }
    counts["answered", default: 0] += 1
  }
}
