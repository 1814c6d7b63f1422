import Tidemark
import TidemarkHTTP
import TidemarkHTTPCache
import TidemarkSync
import TidemarkTestKit

/// Requests through an HTTP cache whose server answers late, and whatever can be called meanwhile.
///
/// An answer to a question from before the cache was emptied, or its address made void, is never
/// served to somebody who came after that.
final class ExchangeTrial {
  /// A part of an answer for which the transport waits.
  private struct Ask: Sendable {
    let path: String
    let isEnd: Bool
  }

  private struct Reader {
    let path: String
    /// The last step before it came that has made its address void.
    let voidedBefore: Int
    let task: Task<HTTPTransportAnswer, any Error>
    var isCancelled = false
  }

  private struct LateTransport: HTTPTransport {
    let gate: Gate<Ask, String>

    func stream(
      _ request: HTTPTransportRequest,
      head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
      body: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
      let path = String(request.url.dropFirst(HTTPOrigin.address.count))
      let text = try await gate.ask(Ask(path: path, isEnd: false))
      try head(
        HTTPTransportAnswer(
          status: 200, headers: ["cache-control": "max-age=600", "etag": "\"\(text)\""]))
      try body(Array(text.utf8))
      _ = try await gate.ask(Ask(path: path, isEnd: true))
    }

    func close() async {}
  }

  private var chance: SeededGenerator
  private let store: Store
  private let gate = Gate<Ask, String>()
  private let cache: HTTPCache
  private var readers: [Reader] = []
  /// The step in which each question was seen first.
  private var asked: [Int: Int] = [:]
  private var voided: [String: Int] = [:]
  private var step = 0
  private var log: [String] = []
  private var counts: [String: Int] = [:]

  init(_ seeded: SeededGenerator) throws {
    var chance = seeded
    let disk = SimulatedFileSystem(seed: chance.next())
    store = try Store.openBlocking(
      at: "store", configuration: Store.Configuration().simulated(on: disk, clock: ManualClock()))
    cache = try HTTPCache(store: store, transport: LateTransport(gate: gate))
    self.chance = chance
  }

  func run(_ steps: Int) async throws -> [String: Int] {
    do {
      for _ in 0..<steps {
        step += 1
        try await act()
        await TaskQueue.rest()
        await look()
      }
      try await finish()
    } catch {
      await gate.shut()
      for reader in readers { reader.task.cancel() }
      throw error
    }
    await cache.close()
    try await store.close()
    return counts
  }

  private func fail(_ message: String) -> CacheViolation { CacheViolation(message, after: log) }

  private func note(_ line: String) {
    log.append("\(step). \(line)")
    counts[String(line.prefix { $0 != " " }), default: 0] += 1
  }

  private func act() async throws {
    let path = chance.pick(["/a", "/b"]) ?? "/a"
    switch chance.int(below: 14) {
    case 0..<5: read(path)
    case 5..<10:
      guard let question = chance.pick(await gate.open) else { return read(path) }
      await answer(question)
    case 10:
      let waiting = readers.indices.filter { !readers[$0].isCancelled }
      guard let index = chance.pick(waiting) else { return }
      readers[index].isCancelled = true
      readers[index].task.cancel()
      note("cancel a reader of \(readers[index].path)")
    case 11:
      note("removeAll")
      try await cache.removeAll()
      for path in ["/a", "/b"] { voided[path] = step }
    case 12:
      note("remove \(path)")
      try await cache.remove(HTTPOrigin.address + path)
      voided[path] = step
    default:
      note("removeResponses")
      _ = try await cache.responses.removeAll()
      for path in ["/a", "/b"] { voided[path] = step }
    }
  }

  private func read(_ path: String) {
    let asksAnew = chance.chance(0.3)
    let request = HTTPTransportRequest(
      url: HTTPOrigin.address + path, headers: asksAnew ? ["cache-control": "no-cache"] : [:])
    let (cache, gate) = (cache, gate)
    let task = Task {
      do {
        let answer = try await cache.answer(to: request, limit: 1 << 20)
        await gate.finish()
        return answer
      } catch {
        await gate.finish()
        throw error
      }
    }
    readers.append(Reader(path: path, voidedBefore: voided[path] ?? 0, task: task))
    note("read \(path)\(asksAnew ? " anew" : "")")
  }

  private func answer(_ question: Gate<Ask, String>.Waiting) async {
    note(question.question.isEnd ? "end of \(question.id)" : "head of \(question.id)")
    await gate.answer(question.id, .success("\(question.question.path) #\(question.id)"))
  }

  private func look() async {
    for waiting in await gate.open where asked[waiting.id] == nil { asked[waiting.id] = step }
  }

  private func finish() async throws {
    var idle = 0
    while await gate.finished < readers.count {
      step += 1
      await TaskQueue.rest()
      await look()
      idle += 1
      if idle > 20_000 { throw fail("a reader waits, and nothing is asked") }
      guard let question = await gate.open.first else { continue }
      idle = 0
      await answer(question)
    }
    for reader in readers {
      let answer: HTTPTransportAnswer
      do { answer = try await reader.task.value } catch is CancellationError {
        if !reader.isCancelled { throw fail("a reader was cancelled by another one") }
        continue
      }
      let text = String(decoding: answer.body, as: UTF8.self)
      guard let mark = text.firstIndex(of: "#"), let id = Int(text[text.index(after: mark)...]),
        text.hasPrefix(reader.path + " ")
      else { throw fail("a reader of \(reader.path) got \(text)") }
      if let time = asked[id], time < reader.voidedBefore {
        throw fail(
          "a reader of \(reader.path) got \(text), asked in step \(time), "
            + "though that was made void in step \(reader.voidedBefore)")
      }
      counts["answered", default: 0] += 1
    }
  }
}
