import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkHTTP

@testable import TidemarkHTTPCache

/// Questions to a server of which something becomes while they are under way.
@Suite("Questions of an HTTP cache") struct QuestionTests {
  static let fresh = ["cache-control": "max-age=600", "etag": "\"a\""]
  static let stale = ["cache-control": "max-age=0", "etag": "\"a\""]

  /// The ways to say something of a response.
  enum Saying: CaseIterable {
    case removeAll, removeLabel, removeKey, removeURL, markLabel, markKey, put, post, otherServer

    func say(_ bench: HeldBench) async throws {
      let responses = bench.cache.responses
      let label = LabelFilter.all("a.example")
      switch self {
      case .removeAll: try await bench.cache.removeAll()
      case .removeLabel: try await responses.removeAll(labels: label)
      case .removeKey: try await responses.remove(HeldBench.url)
      case .removeURL: try await bench.cache.remove(HeldBench.url)
      case .markLabel: try await responses.markStale(labels: label)
      case .markKey: try await responses.markStale(keys: [Key(HeldBench.url)])
      case .put:
        let response = StoredResponse(
          status: 200, headers: QuestionTests.fresh, requestTime: 0, responseTime: 0)
        try await responses.put(HeldBench.url, response.encoded() ?? [])
      case .post:
        let number = bench.transport.requests.count
        bench.transport.answer(number, "", [:])
        let request = HTTPTransportRequest(method: "POST", url: HeldBench.url)
        _ = try await bench.cache.answer(to: request, limit: 10)
      case .otherServer: try await responses.removeAll(labels: LabelFilter.all("b.example"))
      }
    }
  }

  @Test(
    "an answer that was under way when something was said is not kept, nor for others",
    arguments: Saying.allCases, [false, true])
  func underWay(saying: Saying, isStored: Bool) async throws {
    let bench = try HeldBench()
    if isStored {
      bench.transport.answer(0, "0", Self.stale)
      #expect(try await bench.ask().value == "0")
    }
    let first = bench.ask()
    try await bench.transport.wait(requests: isStored ? 2 : 1)
    let asked = bench.transport.requests.count
    try await saying.say(bench)
    let second = bench.ask()
    let isHeeded = saying != .otherServer
    if isHeeded {
      let posts = saying == .post ? 1 : 0
      try await bench.transport.wait(requests: asked + posts + 1)
      bench.transport.answer(asked + posts, "2", Self.fresh)
      #expect(try await second.value == "2")
    } else {
      try await bench.wait(shared: 1)
    }
    if isStored {
      bench.transport.answer(asked - 1, "", status: 304, Self.fresh)
      #expect(try await first.value == "0")
    } else {
      bench.transport.answer(asked - 1, "1", Self.fresh)
      #expect(try await first.value == "1")
    }
    let kept = isHeeded ? "2" : isStored ? "0" : "1"
    if !isHeeded { #expect(try await second.value == kept) }
    let before = bench.transport.requests.count
    #expect(try await bench.ask().value == kept)
    #expect(bench.transport.requests.count == before)
    try await bench.close()
  }

  @Test("nothing of a former user is served after removeAll, however late it comes")
  func signOut() async throws {
    let bench = try HeldBench()
    let late = (0..<5).map { bench.ask(url: "http://a.example/\($0)") }
    try await bench.transport.wait(requests: 5)
    try await bench.cache.removeAll()
    for number in 0..<5 { bench.transport.answer(number, "user A", Self.fresh) }
    for task in late { #expect(try await task.value == "user A") }
    #expect(try bench.cache.responses.count == 0)
    try await bench.close()
  }

  @Test("the later asked one of two answers that vary by nothing stays")
  func later() async throws {
    let bench = try HeldBench()
    let early = bench.ask(["x": "1"])
    try await bench.transport.wait(requests: 1)
    let late = bench.ask(["x": "2"])
    try await bench.transport.wait(requests: 2)
    bench.transport.answer(1, "late", Self.fresh)
    #expect(try await late.value == "late")
    bench.transport.answer(0, "early", Self.fresh)
    #expect(try await early.value == "early")
    #expect(try await bench.ask(["x": "1"]).value == "late")
    try await bench.close()
  }

  @Test("variants that are asked for at a time are all kept")
  func variants() async throws {
    let bench = try HeldBench()
    let headers = Self.fresh.merging(["vary": "x"]) { $1 }
    var tasks: [Task<String, any Error>] = []
    for number in 0..<4 {
      tasks.append(bench.ask(["x": "\(number)"]))
      try await bench.transport.wait(requests: number + 1)
    }
    for number in [2, 0, 3, 1] {
      bench.transport.answer(number, "\(number)", headers)
      #expect(try await tasks[number].value == "\(number)")
    }
    for number in 0..<4 { #expect(try await bench.ask(["x": "\(number)"]).value == "\(number)") }
    #expect(bench.transport.requests.count == 4)
    try await bench.close()
  }

  @Test(
    "a refusal that was asked for before a put leaves what was put", arguments: [401, 404, 302])
  func lateRefusal(status: Int) async throws {
    let bench = try HeldBench()
    bench.transport.answer(0, "0", Self.stale)
    _ = try await bench.ask().value
    let late = bench.ask()
    try await bench.transport.wait(requests: 2)
    let now = Int64(Date().timeIntervalSince1970 * 1_000)
    let response = StoredResponse(
      status: 200, headers: Self.fresh, requestTime: now, responseTime: now, body: Array("1".utf8))
    try await bench.cache.responses.put(HeldBench.url, response.encoded() ?? [])
    bench.transport.answer(1, "no", status: status, ["cache-control": "no-store"])
    #expect(try await late.value == "no")
    bench.cache.isOffline = true
    #expect(try await bench.ask().value == "1")
    try await bench.close()
  }

  // MARK: One question for all

  @Test(
    "equal requests have one question, whichever of them leave",
    arguments: [[0], [0, 1, 2], [40], Array(0..<40)])
  func leaving(numbers: [Int]) async throws {
    let bench = try HeldBench()
    var tasks = [bench.ask()]
    try await bench.transport.wait(requests: 1)
    for _ in 1...40 { tasks.append(bench.ask()) }
    try await bench.wait(shared: 40)
    for number in numbers { tasks[number].cancel() }
    for number in numbers {
      await #expect(throws: CancellationError.self) { try await tasks[number].value }
    }
    #expect(bench.transport.cancelled == 0)
    bench.transport.answer(0, "1", Self.fresh)
    for (number, task) in tasks.enumerated() where !numbers.contains(number) {
      #expect(try await task.value == "1")
    }
    #expect(bench.transport.requests.count == 1)
    try await bench.close()
  }

  @Test("a question is called off when all have left, and the next one is asked anew")
  func allLeave() async throws {
    let bench = try HeldBench()
    var tasks = [bench.ask()]
    try await bench.transport.wait(requests: 1)
    for _ in 0..<5 { tasks.append(bench.ask()) }
    try await bench.wait(shared: 5)
    for task in tasks { task.cancel() }
    try await bench.transport.wait(requests: 1, cancelled: 1)
    bench.transport.answer(1, "2", Self.fresh)
    #expect(try await bench.ask().value == "2")
    try await bench.close()
  }

  @Test("a reader that throws takes the answer from nobody")
  func throwing() async throws {
    struct Enough: Error {}
    let bench = try HeldBench()
    let first = Task {
      try await bench.cache.stream(HTTPTransportRequest(url: HeldBench.url)) { _ in
        throw Enough()
      } body: { _ in
      }
    }
    try await bench.transport.wait(requests: 1)
    let second = bench.ask()
    try await bench.wait(shared: 1)
    bench.transport.answer(0, "1", Self.fresh)
    await #expect(throws: Enough.self) { try await first.value }
    #expect(try await second.value == "1")
    #expect(bench.transport.requests.count == 1)
    try await bench.close()
  }

  @Test("requests that wait for an answer take it though it is fresh no more when it comes")
  func sharedStale() async throws {
    let bench = try HeldBench()
    bench.transport.answer(0, "1", Self.stale)
    _ = try await bench.ask().value
    var tasks = [bench.ask()]
    try await bench.transport.wait(requests: 2)
    for _ in 0..<9 { tasks.append(bench.ask()) }
    try await bench.wait(shared: 9)
    bench.transport.answer(1, "", status: 304, Self.stale)
    for task in tasks { #expect(try await task.value == "1") }
    #expect(bench.transport.requests.count == 2)
    try await bench.close()
  }

  @Test(
    "requests that wait for a server that cannot be reached do not ask it again",
    arguments: [false, true])
  func sharedFailure(isStored: Bool) async throws {
    let bench = try HeldBench()
    if isStored {
      bench.transport.answer(0, "1", Self.stale)
      _ = try await bench.ask().value
    }
    let number = isStored ? 1 : 0
    var tasks = [bench.ask()]
    try await bench.transport.wait(requests: number + 1)
    for _ in 0..<9 { tasks.append(bench.ask()) }
    try await bench.wait(shared: 9)
    bench.transport.fail(number)
    for task in tasks {
      if isStored {
        #expect(try await task.value == "1")
      } else {
        await #expect(throws: (any Error).self) { try await task.value }
      }
    }
    #expect(bench.transport.requests.count == number + 1)
    try await bench.close()
  }

  @Test(
    "answers that must not be shared are asked for by each", arguments: ["no-store", "no-cache"])
  func apart(control: String) async throws {
    let bench = try HeldBench()
    var tasks = [bench.ask()]
    try await bench.transport.wait(requests: 1)
    for _ in 0..<3 { tasks.append(bench.ask()) }
    try await bench.wait(shared: 3)
    for number in 0..<4 { bench.transport.answer(number, "x", ["cache-control": control]) }
    for task in tasks { #expect(try await task.value == "x") }
    #expect(bench.transport.requests.count == 4)
    try await bench.close()
  }

  // MARK: Slow readers

  @Test(
    "a reader that is slow holds up no other one, and misses nothing", arguments: [false, true])
  func slowReader(isStored: Bool) async throws {
    let bench = try HeldBench()
    let body = String(repeating: "0123456789abcdef", count: 100_000)
    if isStored {
      bench.transport.answer(0, body, Self.fresh)
      _ = try await bench.ask().value
    }
    let (reading, go) = (Signal(), Signal())
    let slow = Task {
      let count = Lock(0)
      try await bench.cache.respond(to: HTTPTransportRequest(url: HeldBench.url)) { _ in
      } body: { bytes in
        reading.raise()
        await go.wait(beyond: 0)
        count.withLock { $0 += bytes.count }
      }
      return count.withLock { $0 }
    }
    bench.transport.answer(0, body, Self.fresh)
    await reading.wait(beyond: 0)
    bench.transport.answer(1, body, Self.fresh)
    #expect(try await bench.ask().value.utf8.count == body.utf8.count)
    go.raise()
    #expect(try await slow.value == body.utf8.count)
    try await bench.close()
  }

  @Test("a hundred readers that do not read take no thread")
  func stuckReaders() async throws {
    let bench = try HeldBench()
    bench.transport.answer(0, String(repeating: "x", count: 1 << 20), Self.fresh)
    _ = try await bench.ask().value
    let (reading, go) = (Signal(), Signal())
    let stuck = (0..<100).map { _ in
      Task {
        try await bench.cache.respond(to: HTTPTransportRequest(url: HeldBench.url)) { _ in
          reading.raise()
          await go.wait(beyond: 0)
        } body: { _ in
        }
      }
    }
    while reading.count < 100 { await reading.wait(beyond: reading.count) }
    #expect(try await bench.ask().value.utf8.count == 1 << 20)
    go.raise()
    for task in stuck { try await task.value }
    try await bench.close()
  }
}
