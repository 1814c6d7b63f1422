import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

/// A source that holds each question until it is released, and answers with its number.
actor NumberedSource {
  private(set) var requests = 0
  private var held: [Int: CheckedContinuation<Void, Never>] = [:]

  func answer() async -> [UInt8] {
    requests += 1
    let number = requests
    await withCheckedContinuation { held[number] = $0 }
    return Array("answer \(number)".utf8)
  }

  func release(_ number: Int) { held.removeValue(forKey: number)?.resume() }

  /// Returns once so many questions have come, or after so many looks.
  @discardableResult
  func wait(for count: Int, looks: Int = .max) async -> Bool {
    for _ in 0..<looks {
      if requests >= count, held[count] != nil { return true }
      await Task.yield()
    }
    return false
  }
}

@Suite("Answers of sources that something was said about meanwhile", .timeLimit(.minutes(20)))
struct OvertakenAnswerTests {
  let machine = Machine()

  /// The ways to say something about a key, its labels or its cache.
  enum Statement: CaseIterable {
    case put, blockingPut, remove, removeKeys, removeAll, removeByLabel, touch
    case markKey, markLabel, markLabelsNot, storeMarkKey, storeMarkLabel
    case cachedBatch, clear, userPut, userPutWithLabel, userDelete, sync, refill

    func make(_ store: Store, _ cache: Cache<[UInt8]>) async throws {
      switch self {
      case .put: try await cache.put("k", Array("put".utf8), labels: ["l"])
      case .blockingPut: try cache.blocking.put("k", Array("put".utf8))
      case .remove: try await cache.remove("k")
      case .removeKeys: try await cache.remove(keys: ["other", "k"])
      case .removeAll: try await cache.removeAll()
      case .removeByLabel: try await cache.removeAll(labels: .any("l", "m"))
      case .touch:
        try await cache.put("k", Array("put".utf8))
        try await cache.touch("k", maxAge: .seconds(5))
      case .markKey: try await cache.markStale(keys: ["k"])
      case .markLabel: try await cache.markStale(labels: .all("l"))
      case .markLabelsNot: try await cache.markStale(labels: .not("m"))
      case .storeMarkKey: try await store.markStale(keys: ["x", "a/k"])
      case .storeMarkLabel: try await store.markStale(labels: .all("l"))
      case .cachedBatch:
        var batch = WriteBatch()
        try batch.put("a/k", "put", options: PutOptions(storageClass: .cache))
        try await store.write(batch)
      case .clear: try await store.clear(prefix: "a")
      case .userPut: try await store.put("a/k", "mine")
      case .userPutWithLabel: try await store.put("a/k", "mine", labels: ["m"])
      case .userDelete: try await store.delete("a/k")
      case .sync: try await cache.sync(with: ScriptedCollection(["k", "j"]))
      case .refill:
        try await cache.put("k", Array("put".utf8))
        try await cache.removeAll()
      }
    }
  }

  private static let policies: [ReadPolicy] = [
    .staleWhileRevalidate, .cacheFirst, .networkFirst, .networkOnly, .automatic,
  ]

  private func source(_ scripted: NumberedSource) -> CacheSource<[UInt8]> {
    CacheSource(timeout: nil) { _ in .value(await scripted.answer(), labels: ["l"]) }
  }

  /// Begins a read, and returns once its source was asked.
  private func ask(
    _ cache: Cache<[UInt8]>, _ policy: ReadPolicy, _ scripted: NumberedSource
  ) async throws -> Task<CacheRead<[UInt8]>, any Error> {
    let source = source(scripted)
    let read = Task { try await cache.read("k", policy, from: source) }
    await scripted.wait(for: 1)
    return read
  }

  private func cache(_ store: Store, isThere: Bool = false) async throws -> Cache<[UInt8]> {
    let policy = CachePolicy(maxAge: .seconds(60), capacity: nil)
    let cache = try store.cache(prefix: "a/", policy: policy)
    if isThere {
      try await cache.put("k", Array("old".utf8), labels: ["l"], hash: [1])
      machine.clock.advance(by: .seconds(70))
    }
    return cache
  }

  @Test(
    "an answer is not kept once something was said about what was asked for",
    arguments: Statement.allCases, [false, true])
  func kept(statement: Statement, isThere: Bool) async throws {
    for policy in Self.policies {
      let machine = Machine()
      let store = try machine.open()
      let policyOfCache = CachePolicy(maxAge: .seconds(60), capacity: nil)
      let cache = try store.cache(prefix: "a/", policy: policyOfCache)
      if isThere {
        try await cache.put("k", Array("old".utf8), labels: ["l"], hash: [1])
        machine.clock.advance(by: .seconds(70))
      }
      let scripted = NumberedSource()
      let read = try await ask(cache, policy, scripted)
      try await statement.make(store, cache)
      let stands = try store.value(forKey: "a/k")?.text
      await scripted.release(1)
      _ = try await read.value
      while cache.region.flights.count > 0 { await Task.yield() }
      #expect(try store.value(forKey: "a/k")?.text == stands, "\(policy)")
      try await store.close()
    }
  }

  @Test(
    "a reader that asks after a statement joins no earlier question", arguments: Statement.allCases
  )
  func joined(statement: Statement) async throws {
    let store = try machine.open()
    let cache = try await cache(store)
    let scripted = NumberedSource()
    let first = try await ask(cache, .networkFirst, scripted)
    try await statement.make(store, cache)
    let isOwned = [.userPut, .userPutWithLabel].contains(statement)
    let source = source(scripted)
    let second = Task { try await cache.read("k", .networkFirst, from: source) }
    #expect(await scripted.wait(for: 2, looks: isOwned ? 100 : 20_000) == !isOwned)
    await scripted.release(2)
    if isOwned {
      #expect(try await second.value.value?.text == "mine")
    } else if await scripted.requests == 2 {
      #expect(try await second.value.fetched?.value.text == "answer 2")
      #expect(try cache.peek("k")?.value.text == "answer 2")
    }
    await scripted.release(1)
    _ = try await first.value
    if !isOwned { #expect(try cache.peek("k")?.value.text == "answer 2") }
    try await store.close()
  }

  @Test(
    "the reader of an answer that is not kept is given what was written since, or else the answer")
  func given() async throws {
    let rows: [(Statement, String)] = [
      (.put, "put"), (.touch, "put"), (.cachedBatch, "put"), (.userPut, "mine"), (.sync, "k 1"),
      (.remove, "answer 1"), (.removeAll, "answer 1"), (.markKey, "answer 1"),
      (.storeMarkLabel, "answer 1"), (.clear, "answer 1"), (.refill, "answer 1"),
    ]
    for isThere in [false, true] {
      for (statement, value) in rows {
        let machine = Machine()
        let store = try machine.open()
        let cache = try store.cache(prefix: "a/", policy: .manifest)
        if isThere { try await cache.put("k", Array("old".utf8), labels: ["l"]) }
        let scripted = NumberedSource()
        let read = try await ask(cache, .networkFirst, scripted)
        try await statement.make(store, cache)
        await scripted.release(1)
        let outcome = try await read.value
        #expect(outcome.value?.text == value && outcome.error == nil, "\(statement), \(isThere)")
        try await store.close()
      }
    }
  }

  @Test("an answer is kept whatever is said about other keys, labels and caches, or makes room")
  func others() async throws {
    let store = try machine.open()
    let bounds = CachePolicy(maxAge: .seconds(60), maxStale: .seconds(10), capacity: 3)
    let cache = try store.cache(prefix: "a/", policy: bounds)
    let other = try store.cache(prefix: "b/")
    try await cache.put("k", Array("old".utf8))
    machine.clock.advance(by: .seconds(100))
    let scripted = NumberedSource()
    let read = try await ask(cache, .networkFirst, scripted)
    try await cache.put("j", [1], labels: ["m"])
    try await cache.remove("absent")
    try await cache.markStale(labels: .all("m"))
    try await cache.removeAll(labels: .all("l", "m"))
    try await other.put("k", [1])
    try await other.removeAll()
    try await store.markStale(keys: ["k", "b/k"], labels: .all("m"))
    try await store.put("a", "mine")
    try await store.delete("a/kk")
    try await store.clear(prefix: "a/kk")
    try await cache.removeStale()
    for number in 0..<8 { try await cache.put("\(number)", [1]) }
    #expect(try cache.peek("k") == nil)
    await scripted.release(1)
    #expect(try await read.value.value?.text == "answer 1")
    #expect(try cache.peek("k")?.value.text == "answer 1")
    try await store.close()
  }

  @Test("that there is nothing is forgotten once something is said about the key or its cache")
  func absences() async throws {
    let store = try machine.open()
    let cache = try await cache(store)
    let asked = Lock(0)
    let source = CacheSource<[UInt8]>(timeout: nil) { _ in
      asked.withLock { $0 += 1 }
      return .absent(maxAge: .seconds(1_000))
    }
    let statements: [Statement] = [
      .remove, .removeAll, .markKey, .storeMarkKey, .clear, .userDelete,
    ]
    for (number, statement) in statements.enumerated() {
      #expect(try await cache.read("k", .cacheFirst, from: source).value == nil)
      #expect(try await cache.read("k", .cacheFirst, from: source).value == nil)
      #expect(asked.withLock { $0 } == number + 1, "\(statement)")
      try await statement.make(store, cache)
    }
    // A statement about labels does not touch keys that are absent.
    #expect(try await cache.read("k", .cacheFirst, from: source).kind == .gone)
    try await cache.markStale(labels: .all("l"))
    #expect(try await cache.read("k", .cacheFirst, from: source).kind == .neither)
    try await store.close()
  }

  @Test("an absence, or a confirmation, that was overtaken changes nothing")
  func lateWords() async throws {
    for answer in [FetchedValue<[UInt8]>.absent(maxAge: .seconds(9)), .notModified(hash: [9])] {
      for statement in [Statement.put, .removeAll, .markKey, .refill] {
        let machine = Machine()
        let store = try machine.open()
        let cache = try store.cache(prefix: "a/", policy: .manifest)
        try await cache.put("k", Array("old".utf8), labels: ["l"], hash: [1])
        let scripted = NumberedSource()
        let source = CacheSource<[UInt8]>(timeout: nil) { _ in
          _ = await scripted.answer()
          return answer
        }
        let read = Task { try await cache.read("k", .networkFirst, from: source) }
        await scripted.wait(for: 1)
        try await statement.make(store, cache)
        let stands = try cache.peek("k")
        await scripted.release(1)
        let outcome = try await read.value
        if statement == .put { #expect(outcome.value?.text == "put" && outcome.error == nil) }
        let after = try cache.peek("k")
        #expect(after?.value == stands?.value && after?.hash == stands?.hash, "\(statement)")
        #expect(after?.isValid == stands?.isValid, "\(statement)")
        #expect(try await cache.read("k", .cacheOnly(), from: source).value == stands?.value)
        let next = Task { try await cache.read("k", .cacheFirst, from: source) }
        if stands?.isValid != true {
          #expect(await scripted.wait(for: 2, looks: 20_000), "\(statement): nothing is remembered")
          await scripted.release(2)
        }
        _ = try await next.value
        try await store.close()
      }
    }
  }

  /// A source's word of a key.
  enum Word: CaseIterable {
    case value, absent, notModified

    func fetched(_ number: Int) -> FetchedValue<[UInt8]> {
      switch self {
      case .value: .value(Array("answer \(number)".utf8), labels: ["l"])
      case .absent: .absent(maxAge: .seconds(9))
      case .notModified: .notModified(hash: [UInt8(number)])
      }
    }
  }

  /// A reader whose question is answered when the scripted source is told to.
  private func ask(
    _ cache: Cache<[UInt8]>, _ scripted: NumberedSource, _ word: Word, _ number: Int
  ) -> Task<CacheRead<[UInt8]>, any Error> {
    let source = CacheSource<[UInt8]>(timeout: nil) { _ in
      _ = await scripted.answer()
      return word.fetched(number)
    }
    return Task { try await cache.read("k", .networkFirst, from: source) }
  }

  @Test(
    "an answer is never kept over the answer to a later question",
    arguments: Word.allCases, Word.allCases)
  func later(first: Word, second: Word) async throws {
    let statements: [@Sendable (Store, Cache<[UInt8]>) async throws -> Void] = [
      { _, cache in try await cache.markStale(labels: .all("m")) },
      { store, _ in try await store.markStale(labels: .any("m", "n")) },
      { _, cache in try await cache.removeAll(labels: .all("m")) },
      { _, cache in try await cache.markStale(keys: ["k"]) },
    ]
    for (number, statement) in statements.enumerated() {
      for isThere in [true, false] {
        let machine = Machine()
        let store = try machine.open()
        let cache = try store.cache(prefix: "a/", policy: .manifest)
        if isThere { try await cache.put("k", Array("old".utf8), labels: ["l"], hash: [1]) }
        let scripted = NumberedSource()
        let early = ask(cache, scripted, first, 1)
        await scripted.wait(for: 1)
        try await statement(store, cache)
        let late = ask(cache, scripted, second, 2)
        await scripted.wait(for: 2)
        await scripted.release(2)
        _ = try await late.value
        let stands = try cache.peek("k")
        await scripted.release(1)
        let outcome = try await early.value
        let after = try cache.peek("k")
        let comment: Comment = "statement \(number), there: \(isThere)"
        if second != .notModified || isThere {
          #expect(after?.value == stands?.value && after?.hash == stands?.hash, comment)
          // That a value is right which was given up says nothing.
          #expect(first == .notModified || outcome.error == nil, comment)
        }
        if second == .value { #expect(outcome.value?.text == "answer 2", comment) }
        try await store.close()
      }
    }
  }

  @Test(
    "an answer that the key is absent removes what an earlier question has stored",
    arguments: [Word.value, .notModified])
  func absentLast(first: Word) async throws {
    let labels: [LabelFilter] = [.all("m"), .any("m", "n"), .all("m", "n")]
    for label in labels {
      let machine = Machine()
      let store = try machine.open()
      let cache = try store.cache(prefix: "a/", policy: .manifest)
      try await cache.put("k", Array("old".utf8), labels: ["l"], hash: [1])
      let scripted = NumberedSource()
      let early = ask(cache, scripted, first, 1)
      await scripted.wait(for: 1)
      try await cache.markStale(labels: label)
      let late = ask(cache, scripted, .absent, 2)
      await scripted.wait(for: 2)
      await scripted.release(1)
      _ = try await early.value
      await scripted.release(2)
      #expect(try await late.value.value == nil)
      #expect(try cache.peek("k") == nil)
      try await store.close()
    }
  }

  @Test("a source that writes the key itself is not its own undoing")
  func selfWriting() async throws {
    let store = try machine.open()
    let cache = try await cache(store)
    let source = CacheSource<[UInt8]>(timeout: nil) { request in
      try await cache.put(request.key, Array("whole".utf8), labels: ["l"])
      return .value(Array("part".utf8))
    }
    let read = try await cache.read("k", .cacheFirst, from: source)
    #expect(read.value?.text == "whole" && read.error == nil)
    #expect(try cache.peek("k")?.labels == ["l"])
    try await store.close()
  }

  @Test("the first of many readers leaves, and the others share one question to its end")
  func firstLeaves() async throws {
    let store = try machine.open()
    for policy in Self.policies where policy != .staleWhileRevalidate {
      let cache = try await cache(store)
      try await cache.removeAll()
      let scripted = NumberedSource()
      let first = try await ask(cache, policy, scripted)
      let source = source(scripted)
      let others = (0..<40).map { _ in
        Task { try await cache.read("k", policy, from: source).value?.text }
      }
      while cache.region.flights.readers < 41 { await Task.yield() }
      first.cancel()
      await #expect(throws: CancellationError.self) { try await first.value }
      for task in others.prefix(7) { task.cancel() }
      while cache.region.flights.readers > 33 { await Task.yield() }
      await scripted.release(1)
      for other in others.dropFirst(7) { #expect(try await other.value == "answer 1") }
      #expect(await scripted.requests == 1, "\(policy)")
    }
    try await store.close()
  }
}
