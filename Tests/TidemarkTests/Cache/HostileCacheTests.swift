import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCaches

/// Caches in hands that mean no good, or do not think.
@Suite("Hostile use of a cache")
struct HostileCacheTests {
  struct Failure: Error {}

  private let machine = Machine()

  private func keys(_ cache: Cache<[UInt8]>) throws -> [String] {
    try cache.entries().map(\.key.text)
  }

  @Test("ages below zero are never valid, and those beyond all numbers are valid for long")
  func ages() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    for age in [Duration.seconds(-1), .seconds(Int64.min), .zero] {
      try await cache.put("k", [1], maxAge: age)
      #expect(try !cache.isValid("k"), "\(age)")
      #expect(try await cache.touch("k", maxAge: age) && !cache.isValid("k"))
    }
    try await cache.put("k", [1], maxAge: .seconds(Int64.max))
    machine.clock.advance(by: .seconds(60 * 365 * 86_400))
    #expect(try cache.isValid("k") && cache.entry(forKey: "k")?.isValid == true)
    for age in [Duration.seconds(-1), .seconds(Int64.min)] {
      let other = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: age))
      try await other.put("default", [1])
      #expect(try !other.isValid("default") && other.value(forKey: "default") == [1])
    }
    let endless = try store.cache(
      prefix: "a/", policy: CachePolicy(maxAge: .seconds(Int64.max), maxStale: .seconds(-9)))
    try await endless.put("default", [1])
    #expect(try endless.isValid("default"))
    #expect(try await endless.removeStale(for: .seconds(Int64.min)) == 0)
    #expect(try keys(endless) == ["default", "k"])
    let keeping = try store.cache(
      prefix: "a/", policy: CachePolicy(maxAge: .zero, maxStale: .seconds(Int64.max)))
    try await keeping.put("other", [1])
    #expect(try await keeping.removeStale(for: .seconds(Int64.max)) == 0)
    #expect(try keys(keeping) == ["default", "k", "other"])
    try await store.close()
  }

  @Test("a cache without room keeps nothing, serves what is fetched, and touches nobody's else")
  func noRoom() async throws {
    let store = try machine.open()
    try await store.put("a/mine", "1")
    let source = CacheSource<[UInt8]> { _ in .value([7]) }
    for policy in [
      CachePolicy(capacity: 0), CachePolicy(capacity: -5), CachePolicy(capacity: nil, bytes: 0),
      CachePolicy(capacity: Int.min, bytes: Int.min),
    ] {
      let cache = try store.cache(prefix: "a/", policy: policy)
      try await cache.put("k", [1])
      #expect(try cache.value(forKey: "k") == nil && cache.count == 0, "\(policy)")
      #expect(try await cache.read("k", .cacheFirst, from: source).value == [7])
      #expect(try keys(cache) == ["mine"])
    }
    try await store.close()
    // The order of such a cache, beside the log, is read again.
    let again = try machine.open()
    #expect(try again.knownCaches().map(\.status.entries) == [0])
    try await again.close()
  }

  @Test("a batch that writes a key for the user and for a cache is refused, whichever comes first")
  func mixedBatches() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    let cached = PutOptions(storageClass: .cache)
    var batch = WriteBatch()
    try batch.put("a/k", "mine")
    try batch.put("a/k", "theirs", options: cached)
    try batch.put("other", "mine")
    #expect(await code { try await store.write(batch) } == .conflict)
    batch = WriteBatch()
    try batch.delete("a/k")
    try batch.put("a/k", "theirs", options: cached)
    #expect(await code { try await store.write(batch) } == .conflict)
    #expect(try store.all().isEmpty && store.lastSequence == 0)
    // The user's own comes last, and stays.
    batch = WriteBatch()
    try batch.put("a/k", "theirs", options: cached)
    try batch.put("a/k", "mine")
    try batch.put("a/other", "theirs", options: cached)
    try await store.write(batch)
    #expect(try cache.entry(forKey: "k")?.isOwned == true && store.text(forKey: "a/k") == "mine")
    #expect(try cache.entry(forKey: "other")?.isOwned == false)
    try await store.close()
  }

  @Test("a call that gives entries up counts these alone, whatever is due to go besides")
  func returns() async throws {
    let store = try machine.open()
    let policy = CachePolicy(maxAge: .seconds(1), maxStale: .seconds(1), capacity: nil)
    let cache = try store.cache(prefix: "a/", policy: policy)
    for key in ["1", "2", "3"] { try await cache.put(key, [1]) }
    machine.clock.advance(by: .seconds(100))
    #expect(try await cache.remove("absent") == false)
    #expect(try await cache.remove(keys: ["absent", "1", "1"]) == 1)
    #expect(try cache.blocking.remove(keys: ["absent"]) == 0)
    #expect(try cache.entries().count == 2)
    #expect(try await cache.removeStale() == 2)
    let collection = try store.cache(prefix: "c/", policy: .manifest)
    let source = ScriptedCollection(["1", "2", "3"])
    try await collection.sync(with: source)
    #expect(try await collection.remove("absent") == false)
    // Nothing was given up, so that it is the collection still.
    #expect(try await collection.sync(with: source).kind == .unchanged)
    #expect(await source.lists == 1)
    #expect(try await collection.remove(keys: ["1", "absent"]) == 1)
    #expect(try await collection.sync(with: source).added == 1)
    try await store.close()
  }

  @Test("two caches of one prefix are one, and a value of another type is fetched anew")
  func types() async throws {
    let store = try machine.open()
    let bytes = try store.cache(prefix: "a/", policy: CachePolicy(capacity: 2))
    let numbers = try store.cache(
      prefix: "a/", policy: CachePolicy(capacity: 3),
      coding: CacheCoding<Int>(
        encode: { Array("\($0)".utf8) },
        decode: {
          guard let number = Int(String(decoding: $0, as: UTF8.self)) else { throw Failure() }
          return number
        }))
    try await bytes.put("k", Array("no number".utf8))
    #expect(code { _ = try numbers.value(forKey: "k") } == .coding)
    let source = CacheSource<Int> { _ in .value(42) }
    #expect(try await numbers.read("k", .cacheFirst, from: source).value == 42)
    #expect(try bytes.value(forKey: "k")?.text == "42")
    // The rules that were given last hold for both.
    for key in ["1", "2", "3"] { try await bytes.put(key, [1]) }
    #expect(try keys(bytes) == ["1", "2", "3"] && bytes.policy.capacity == 3)
    try await store.close()
  }

  @Test("a cache inside of another's prefix is refused, and one beside it keeps to itself")
  func prefixes() async throws {
    let store = try machine.open()
    let one = try store.cache(prefix: "a", policy: CachePolicy(capacity: 2))
    for prefix in ["ab", "a/", ""] {
      #expect(code { _ = try store.cache(prefix: prefix) } == .invalidArgument)
    }
    let other = try store.cache(prefix: "b", policy: CachePolicy(capacity: 2))
    // A key that is the prefix itself is one of the cache's, and makes room as others do.
    let options = PutOptions(storageClass: .cache)
    try await store.put("a", "x", options: options)
    #expect(try keys(one) == [""] && one.value(forKey: "")?.text == "x" && one.count == 1)
    for number in 0..<5 {
      try await one.put("\(number)", [1])
      try await other.put("\(number)", [1])
    }
    #expect(try keys(one) == ["3", "4"] && keys(other) == ["3", "4"])
    #expect(try store.text(forKey: "a") == nil)
    try await store.close()
  }

  @Test("a source that hangs costs its time, once, and the next question is a new one")
  func hanging() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    try await cache.put("k", [1])
    machine.clock.advance(by: .seconds(100))
    let held = Lock<[CheckedContinuation<Void, Never>]>([])
    var source = CacheSource<[UInt8]>(timeout: .seconds(5)) { _ in
      // It heeds no cancellation.
      await withCheckedContinuation { waiting in held.withLock { $0.append(waiting) } }
      return .value([9])
    }
    let waited = Lock<[Duration]>([])
    source.timer = { pause in
      waited.withLock { $0.append(pause) }
      while held.withLock({ $0.isEmpty }) { await Task.yield() }
    }
    for policy in [ReadPolicy.networkFirst, .cacheFirst] {
      let read = try await cache.read("k", policy, from: source)
      #expect(read.kind == .storedOnly && (read.error as? TidemarkError)?.code == .timedOut)
    }
    _ = try await cache.read("k", .staleWhileRevalidate, from: source)
    while cache.region.flights.count > 0 { await Task.yield() }
    #expect(waited.withLock { $0 } == [.seconds(5), .seconds(5), .seconds(5)])
    for waiting in held.withLock({ $0 }) { waiting.resume() }
    let quick = CacheSource<[UInt8]> { _ in .value([2]) }
    #expect(try await cache.read("k", .networkFirst, from: quick).value == [2])
    #expect(try cache.value(forKey: "k") == [2])
    try await store.close()
  }

  @Test("no more questions than so many are asked behind readers' backs")
  func refreshes() async throws {
    let store = try machine.open()
    let cache = try store.cache(
      prefix: "a/", policy: CachePolicy(maxAge: .zero, capacity: nil))
    let most = Flights.mostBesideRefreshes
    for number in 0..<(most + 40) { try await cache.put("\(number)", [1]) }
    let isOpen = Lock(false)
    let source = CacheSource<[UInt8]>(timeout: nil) { _ in
      while !isOpen.withLock({ $0 }) { await Task.yield() }
      return .value([2])
    }
    for number in 0..<(most + 40) {
      #expect(try await cache.read("\(number)", .staleWhileRevalidate, from: source).value == [1])
    }
    #expect(cache.region.flights.count == most)
    isOpen.withLock { $0 = true }
    while cache.region.flights.count > 0 { await Task.yield() }
    #expect(try cache.entries().count { $0.value == [2] } == most)
    // The others are asked about by their next readers.
    _ = try await cache.read("\(most)", .staleWhileRevalidate, from: source)
    while cache.region.flights.count > 0 { await Task.yield() }
    #expect(try cache.value(forKey: "\(most)") == [2])
    try await store.close()
  }

  @Test("a question that was begun before a change of one's own does not answer what comes after")
  func refresh() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    let server = Lock(UInt8(1))
    let isOpen = Lock(false)
    let asked = Lock(0)
    let slow = CacheSource<[UInt8]>(timeout: nil) { _ in
      let answer = server.withLock { $0 }
      asked.withLock { $0 += 1 }
      while !isOpen.withLock({ $0 }) { await Task.yield() }
      return .value([answer])
    }
    let early = Task { try await cache.read("k", .networkFirst, from: slow) }
    while asked.withLock({ $0 }) == 0 { await Task.yield() }
    server.withLock { $0 = 2 }
    let quick = CacheSource<[UInt8]> { _ in .value([server.withLock { $0 }]) }
    #expect(try await cache.read("k", .refresh, from: quick).value == [2])
    // The earlier reader has the newer answer, and what it asked for is not kept when it comes.
    #expect(try await early.value.value == [2])
    isOpen.withLock { $0 = true }
    for _ in 0..<500 { await Task.yield() }
    #expect(try cache.value(forKey: "k") == [2])
    try await store.put("a/mine", "1")
    #expect(try await cache.read("mine", .refresh, from: quick).value?.text == "1")
    try await store.close()
  }

  @Test("a clock that jumps while questions are under way leaves no value valid for too long")
  func jumps() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    let clock = machine.clock
    for seconds in [Int64(3_000_000), -5_000_000, 40, -40] {
      let source = CacheSource<[UInt8]> { _ in
        clock.jump(by: .seconds(seconds))
        return .value([1])
      }
      let read = try await cache.read("k", .networkOnly, from: source)
      #expect(read.fetched?.isValid == true && read.error == nil, "\(seconds)")
      clock.advance(by: .seconds(61))
      #expect(try !cache.isValid("k"), "\(seconds)")
      let absent = CacheSource<[UInt8]> { _ in
        clock.jump(by: .seconds(seconds))
        return .absent(maxAge: .seconds(30))
      }
      #expect(try await cache.read("gone", .networkOnly, from: absent).kind == .gone)
      clock.advance(by: .seconds(31))
      let found = CacheSource<[UInt8]> { _ in .value([2]) }
      #expect(try await cache.read("gone", .cacheFirst, from: found).value == [2], "\(seconds)")
      try await cache.removeAll()
    }
    // Nor is it believed for ever that there is nothing.
    let absent = CacheSource<[UInt8]> { _ in .absent(maxAge: .seconds(30)) }
    _ = try await cache.read("gone", .cacheFirst, from: absent)
    clock.jump(by: .seconds(-1_000_000))
    let found = CacheSource<[UInt8]> { _ in .value([2]) }
    #expect(try await cache.read("gone", .cacheFirst, from: found).value == [2])
    try await store.close()
  }

  @Test("labels and marks by the ten thousand are marked in one step, and bounded in each entry")
  func marks() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(capacity: nil))
    let labels = (0..<65).map { EntryLabel("label \($0)") }
    #expect(await code { try await cache.put("k", [1], labels: labels) } != nil)
    #expect(try cache.value(forKey: "k") == nil)
    for number in 0..<10_000 {
      try cache.blocking.put("\(number)", [1], labels: ["all", EntryLabel("n\(number)")])
    }
    try await cache.markStale(labels: .all("all"))
    #expect(try cache.entries(labels: .all("all")).allSatisfy { !$0.isValid })
    try await cache.markStale(keys: (0..<100_000).map { Key("absent \($0)") })
    #expect(try cache.count == 10_000)
    try await store.close()
  }
}
