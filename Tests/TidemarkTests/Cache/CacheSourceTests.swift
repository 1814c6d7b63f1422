import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

@Suite("Reads through a cache", .timeLimit(.minutes(20)))
struct CacheSourceTests {
  struct Failure: Error {}

  /// A source that answers as it is told, and counts.
  actor Source {
    private(set) var requests: [SourceRequest] = []
    private(set) var cancelled = 0
    private var answers: [Result<FetchedValue<[UInt8]>, Failure>]
    private var isHeld = false
    private var held: [CheckedContinuation<Void, Never>] = []

    init(_ answers: [Result<FetchedValue<[UInt8]>, Failure>] = []) { self.answers = answers }

    func hold() { isHeld = true }

    func release() {
      isHeld = false
      for continuation in held { continuation.resume() }
      held = []
    }

    func answer(_ request: SourceRequest) async throws -> FetchedValue<[UInt8]> {
      requests.append(request)
      if isHeld { await withCheckedContinuation { held.append($0) } }
      if Task.isCancelled { cancelled += 1 }
      guard !answers.isEmpty else { return .value(Array("new".utf8)) }
      return try answers.removeFirst().get()
    }

    /// Returns once so many questions have come.
    func wait(for count: Int) async {
      while requests.count < count { await Task.yield() }
    }
  }

  let machine = Machine()

  func source(
    _ scripted: Source, retry: RetryPolicy = RetryPolicy(), staleIfError: Duration? = nil,
    isOnline: Bool = true
  ) -> CacheSource<[UInt8]> {
    CacheSource(
      retry: retry, staleIfError: staleIfError, timeout: nil, isOnline: { isOnline }
    ) { request in
      try await scripted.answer(request)
    }
  }

  enum State: CaseIterable { case none, valid, stale }

  struct Row: Sendable, CustomTestStringConvertible {
    var policy: ReadPolicy
    var state: State
    var fails: Bool
    var kind: CacheRead<[UInt8]>.Kind
    var value: String?
    var fetches: Int
    var testDescription: String { "\(policy), \(state), \(fails ? "fails" : "answers")" }
  }

  static let rows: [Row] = [
    Row(
      policy: .cacheFirst, state: .none, fails: false, kind: .fetchedOnly, value: "new",
      fetches: 1),
    Row(policy: .cacheFirst, state: .none, fails: true, kind: .neither, value: nil, fetches: 1),
    Row(
      policy: .cacheFirst, state: .valid, fails: true, kind: .storedOnly, value: "old", fetches: 0),
    Row(policy: .cacheFirst, state: .stale, fails: false, kind: .both, value: "new", fetches: 1),
    Row(
      policy: .cacheFirst, state: .stale, fails: true, kind: .storedOnly, value: "old", fetches: 1),
    Row(policy: .networkFirst, state: .valid, fails: false, kind: .both, value: "new", fetches: 1),
    Row(
      policy: .networkFirst, state: .valid, fails: true, kind: .storedOnly, value: "old", fetches: 1
    ),
    Row(policy: .networkFirst, state: .none, fails: true, kind: .neither, value: nil, fetches: 1),
    Row(
      policy: .networkOnly, state: .valid, fails: false, kind: .fetchedOnly, value: "new",
      fetches: 1),
    Row(policy: .networkOnly, state: .valid, fails: true, kind: .neither, value: nil, fetches: 1),
    Row(
      policy: .cacheOnly(), state: .stale, fails: false, kind: .storedOnly, value: "old", fetches: 0
    ),
    Row(policy: .cacheOnly(), state: .none, fails: false, kind: .neither, value: nil, fetches: 0),
    Row(
      policy: .cacheOnly(maxStale: .seconds(9)), state: .stale, fails: false, kind: .neither,
      value: nil, fetches: 0),
    Row(
      policy: .cacheOnly(maxStale: .seconds(100)), state: .stale, fails: false, kind: .storedOnly,
      value: "old", fetches: 0),
    Row(policy: .automatic, state: .stale, fails: false, kind: .both, value: "new", fetches: 1),
    Row(
      policy: .automatic, state: .valid, fails: false, kind: .storedOnly, value: "old", fetches: 0),
    Row(
      policy: .staleWhileRevalidate, state: .none, fails: false, kind: .fetchedOnly, value: "new",
      fetches: 1),
    Row(
      policy: .staleWhileRevalidate, state: .valid, fails: false, kind: .storedOnly, value: "old",
      fetches: 0),
    Row(
      policy: .refresh, state: .valid, fails: true, kind: .storedOnly, value: "old", fetches: 1),
  ]

  @Test("a policy decides when the source is asked and what serves", arguments: rows)
  func policies(row: Row) async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    if row.state != .none { try await cache.put("k", Array("old".utf8)) }
    if row.state == .stale { machine.clock.advance(by: .seconds(70)) }
    let scripted = Source(row.fails ? [.failure(Failure())] : [])
    let read = try await cache.read("k", row.policy, from: source(scripted))
    #expect(read.kind == row.kind)
    #expect(read.value?.text == row.value)
    #expect((read.error != nil) == (row.fails && row.fetches > 0))
    #expect(await scripted.requests.count == row.fetches)
    #expect(cache.counts.fetches == row.fetches)
    try await store.close()
  }

  @Test("a value that is stale is given at once, and the source is asked behind the reader's back")
  func revalidation() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    try await cache.put("k", Array("old".utf8), hash: [7])
    machine.clock.advance(by: .seconds(70))
    let scripted = Source()
    let read = try await cache.read("k", .staleWhileRevalidate, from: source(scripted))
    #expect(read.kind == .storedOnly && read.value?.text == "old")
    while try cache.value(forKey: "k")?.text != "new" { await Task.yield() }
    #expect(await scripted.requests == [SourceRequest(key: "k", hash: [7])])
    try await store.close()
  }

  @Test("readers of a key at a time share one question")
  func sharing() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    let scripted = Source()
    await scripted.hold()
    let source = source(scripted)
    let reads = (0..<20).map { _ in
      Task { try await cache.read("k", .networkFirst, from: source).value?.text }
    }
    while cache.region.flights.readers < 20 { await Task.yield() }
    await scripted.wait(for: 1)
    await scripted.release()
    for read in reads { #expect(try await read.value == "new") }
    #expect(await scripted.requests.count == 1)
    let counts = cache.counts
    #expect(counts.fetches + counts.requestsAvoided == 20)
    try await store.close()
  }

  @Test("a question is called off when its last reader goes, and its answer is not kept")
  func cancellation() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    let scripted = Source()
    await scripted.hold()
    let source = source(scripted)
    let first = Task { try await cache.read("k", .networkFirst, from: source) }
    await scripted.wait(for: 1)
    let second = Task { try await cache.read("k", .networkFirst, from: source) }
    for _ in 0..<200 { await Task.yield() }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(await scripted.cancelled == 0)
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    #expect(cache.region.flights.count == 0)
    // The source hears of it, answers all the same, and nobody keeps what it says.
    await scripted.release()
    while await scripted.cancelled == 0 { await Task.yield() }
    for _ in 0..<200 { await Task.yield() }
    #expect(try cache.value(forKey: "k") == nil)
    #expect(try await cache.read("k", .networkFirst, from: source).value?.text == "new")
    try await store.close()
  }

  @Test("a source that says that nothing has changed makes the value valid again")
  func notModified() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    try await cache.put("k", Array("old".utf8), hash: [1])
    machine.clock.advance(by: .seconds(70))
    let scripted = Source([.success(.notModified(hash: [2]))])
    let read = try await cache.read("k", .cacheFirst, from: source(scripted))
    #expect(read.kind == .both && read.value?.text == "old" && read.fetched?.hash == [2])
    #expect(try cache.isValid("k"))
    #expect(cache.counts.bytesSaved == 3)
    #expect(await scripted.requests.map(\.hash) == [[1]])
    let lying = Source([.success(.notModified())])
    let other = try await cache.read("absent", .cacheFirst, from: source(lying))
    #expect(other.kind == .neither && (other.error as? TidemarkError)?.code == .conflict)
    try await store.close()
  }

  @Test("a source that has no such thing takes the value away, and is left alone for a while")
  func absence() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    try await cache.put("k", Array("old".utf8))
    machine.clock.advance(by: .seconds(70))
    let scripted = Source([.success(.absent(maxAge: .seconds(30)))])
    let read = try await cache.read("k", .cacheFirst, from: source(scripted))
    #expect(read.kind == .gone && read.value == nil && read.stored?.value.text == "old")
    #expect(try cache.entry(forKey: "k") == nil)
    machine.clock.advance(by: .seconds(29))
    #expect(try await cache.read("k", .cacheFirst, from: source(scripted)).kind == .neither)
    #expect(await scripted.requests.count == 1)
    machine.clock.advance(by: .seconds(1))
    #expect(try await cache.read("k", .cacheFirst, from: source(scripted)).kind == .fetchedOnly)
    try await store.close()
  }

  @Test(
    "a source that fails is asked again after longer and longer pauses, and no more than it may")
  func retries() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    let retry = RetryPolicy(attempts: 5, pause: .seconds(1), longestPause: .seconds(3))
    let scripted = Source(Array(repeating: .failure(Failure()), count: 4))
    var source = source(scripted, retry: retry)
    let pauses = Lock<[Duration]>([])
    source.sleep = { pause in pauses.withLock { $0.append(pause) } }
    #expect(try await cache.read("k", .cacheFirst, from: source).kind == .fetchedOnly)
    #expect(pauses.withLock { $0 } == [.seconds(1), .seconds(2), .seconds(3), .seconds(3)])
    let failing = Source(Array(repeating: .failure(Failure()), count: 9))
    var other = self.source(failing, retry: retry)
    other.sleep = { _ in }
    let read = try await cache.read("other", .cacheFirst, from: other)
    #expect(read.kind == .neither && read.error is Failure)
    #expect(await failing.requests.count == 5)
    try await store.close()
  }

  @Test("a value that has been stale for too long does not serve in the place of an error")
  func staleIfError() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    try await cache.put("k", Array("old".utf8))
    machine.clock.advance(by: .seconds(160))
    for (limit, kind) in [
      (Duration.seconds(99), CacheRead<[UInt8]>.Kind.neither),
      (.seconds(100), .storedOnly),
    ] {
      let failing = source(Source([.failure(Failure())]), staleIfError: limit)
      #expect(try await cache.read("k", .networkFirst, from: failing).kind == kind)
    }
    try await store.close()
  }

  @Test("a value of the user's own is given, and no source is asked")
  func owned() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    try await store.put("a/k", "mine")
    let scripted = Source()
    for policy in [ReadPolicy.networkFirst, .refresh, .staleWhileRevalidate] {
      #expect(try await cache.read("k", policy, from: source(scripted)).value?.text == "mine")
    }
    #expect(await scripted.requests.isEmpty)
    let read = try await cache.read("k", .networkOnly, from: source(scripted))
    #expect((read.error as? TidemarkError)?.code == .conflict)
    #expect(try store.text(forKey: "a/k") == "mine")
    try await store.close()
  }

  @Test("an answer about a value that is another one by now changes nothing")
  func lateAnswers() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    for answer in [FetchedValue<[UInt8]>.notModified(hash: [9]), .absent(maxAge: .seconds(9))] {
      try await cache.put("k", Array("old".utf8), hash: [1])
      machine.clock.advance(by: .seconds(100))
      let scripted = Source([.success(answer)])
      await scripted.hold()
      let source = source(scripted)
      let read = Task { try await cache.read("k", .networkFirst, from: source) }
      await scripted.wait(for: 1)
      try await cache.put("k", Array("pushed".utf8), hash: [2], maxAge: .seconds(5))
      await scripted.release()
      _ = try await read.value
      let entry = try #require(try cache.entry(forKey: "k"))
      #expect(entry.value.text == "pushed" && entry.hash == [2])
    }
    try await store.close()
  }

  @Test("a value that does not fit, or cannot be decoded, is fetched and given")
  func unkept() async throws {
    let store = try machine.open()
    let policy = CachePolicy(capacity: nil, bytes: 10)
    let cache = try store.cache(prefix: "a/", policy: policy)
    let large = Source([.success(.value(Array("much too large".utf8)))])
    let read = try await cache.read("k", .networkOnly, from: source(large))
    #expect(read.kind == .fetchedOnly && read.value?.text == "much too large")
    #expect(try cache.entries().isEmpty)
    struct Unreadable: Error {}
    let coding = CacheCoding<[UInt8]>(
      encode: { $0 }, decode: { if $0 == [0] { throw Unreadable() } else { $0 } })
    let typed = try store.cache(prefix: "a/", policy: policy, coding: coding)
    try await typed.put("k", [0])
    #expect(code { _ = try typed.value(forKey: "k") } == .coding)
    let answer = Source([.success(.value([1]))])
    #expect(try await typed.read("k", .cacheFirst, from: source(answer)).value == [1])
    try await store.close()
  }

  @Test("a closing store calls questions off")
  func closing() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    let scripted = Source()
    await scripted.hold()
    let source = source(scripted)
    let read = Task { try await cache.read("k", .networkFirst, from: source) }
    await scripted.wait(for: 1)
    try await store.close()
    await #expect(throws: CancellationError.self) { try await read.value }
    await scripted.release()
  }

  @Test("a question for which nobody waits holds no store open")
  func abandonedRefresh() async throws {
    let scripted = Source()
    await scripted.hold()
    let source = source(scripted)
    func ask() async throws {
      let store = try machine.open()
      let cache = try store.cache(prefix: "a/")
      try await cache.put("k", [1], maxAge: .zero)
      #expect(try await cache.read("k", .staleWhileRevalidate, from: source).value == [1])
      await scripted.wait(for: 1)
    }
    try await ask()
    // A store that is open refuses to be opened again.
    var store: Store?
    for _ in 0..<1_000 where store == nil {
      store = try? machine.open()
      if store == nil { try await Task.sleep(for: .milliseconds(5)) }
    }
    await scripted.release()
    try await #require(store).close()
  }

  @Test("a source that makes names up fills no memory with absences")
  func manyAbsences() async throws {
    let store = try machine.open()
    let flights = Flights(store.registry.questions)
    func note(_ name: String, until end: Int64, now: Int64) {
      let question = CacheQuestion(Array(name.utf8), store.registry.questions)
      flights.noteAbsence(question, until: end, now: now)
    }
    for number in 0..<(2 * Flights.mostAbsences) { note("\(number)", until: 1_000, now: 0) }
    #expect(flights.isAbsent(Array("0".utf8), at: 999))
    #expect(!flights.isAbsent(Array("0".utf8), at: 1_000))
    #expect(!flights.isAbsent(Array("\(2 * Flights.mostAbsences - 1)".utf8), at: 0))
    note("new", until: 3_000, now: 2_000)
    #expect(flights.isAbsent(Array("new".utf8), at: 2_000))
    try await store.close()
  }
}
