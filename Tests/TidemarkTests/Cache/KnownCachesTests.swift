import Testing
import TidemarkTestKit

import Tidemark
@testable import TidemarkCaches

@Suite("Caches that a store knows")
struct KnownCachesTests {
  private let machine = Machine()

  @Test("a store knows its caches with rules and counts after it was closed, asked for or not")
  func known() async throws {
    var store = try machine.open()
    #expect(try store.knownCaches().isEmpty)
    let policy = CachePolicy(
      maxAge: .seconds(7), maxStale: .seconds(70), capacity: 10, bytes: 1_000)
    let articles = try store.cache(prefix: "articles/", policy: policy)
    let pages = try store.cache(prefix: "pages/", policy: CachePolicy(capacity: nil))
    for number in 0..<12 { try await articles.put("\(number)", [1, 2, 3]) }
    try await pages.put("home", [1])
    for _ in 0..<3 { _ = try articles.value(forKey: "11") }
    _ = try articles.value(forKey: "0")
    try await store.put("owned", "1")
    try await store.close()
    store = try machine.open(.write)
    var known = try store.knownCaches()
    #expect(known.map(\.prefix) == ["articles/", "pages/"])
    #expect(known[0].status.policy == policy && known[0].status.entries == 10)
    #expect(known[0].status.counts.hits == 3 && known[0].status.counts.misses == 1)
    #expect(known[0].status.counts.evictions == 2 && known[1].status.entries == 1)
    #expect(known[1].status.policy.capacity == nil)
    // Asked for again, the counts go on, and the rules are those of now.
    let again = try store.cache(prefix: "articles/", policy: CachePolicy(capacity: 11))
    _ = try again.entry(forKey: "11")
    #expect(again.counts.hits == 4)
    known = try store.knownCaches()
    #expect(known[0].status.policy.capacity == 11 && known[0].status.counts.hits == 4)
    try await store.close()
    store = try machine.open(.write)
    #expect(try store.knownCaches()[0].status.policy.capacity == 11)
    try await store.close()
  }

  @Test("the entries that make room next are listed in their order, and listing is no use")
  func order() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "c/", policy: CachePolicy(capacity: 3))
    for name in ["a", "b", "c"] {
      try await cache.put(name, [1])
      machine.clock.advance(by: .seconds(1))
    }
    _ = try cache.value(forKey: "a")
    for _ in 0..<2 {
      #expect(try cache.leastRecentlyUsed().map(\.key) == ["b", "c", "a"])
      #expect(try cache.leastRecentlyUsed(limit: 1).map(\.key) == ["b"])
    }
    try await cache.put("d", [1])
    #expect(try cache.leastRecentlyUsed().map(\.key) == ["c", "a", "d"])
    try await store.close()
  }

  @Test("entries are given up by their keys, the user's own and absent ones excepted")
  func removed() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "c/")
    try await cache.put("a", [1])
    try await cache.put("b", [1])
    try await store.put("c/mine", "1")
    #expect(try await cache.remove(keys: ["a", "mine", "absent"]) == 1)
    #expect(try !cache.contains("a") && cache.contains("b") && cache.contains("mine"))
    try await store.close()
  }

  @Test(
    "values are read ahead by their uses, as many as half of the memory holds",
    arguments: [
      (Store.Configuration.WarmUp.mostUsed, ["often"]), (.mostRecent, ["last"]), (.none, []),
    ])
  func warmUp(order: Store.Configuration.WarmUp, expected: [String]) async throws {
    var store = try machine.open()
    let cache = try store.cache(prefix: "c/")
    for name in ["often", "last", "never"] {
      try await cache.put(name, [UInt8](repeating: 1, count: 40_000))
    }
    for _ in 0..<5 { _ = try cache.value(forKey: "often") }
    machine.clock.advance(by: .seconds(1))
    _ = try cache.value(forKey: "last")
    try await store.close()
    store = try machine.open(.write)
    let warmer = WarmUpThread(store.engine, order, budget: 50_000)
    try warmer.run()
    #expect(warmer.warmed == expected.count)
    let before = try store.status.cacheHits
    for name in expected { _ = try store.value(forKey: "c/" + name) }
    #expect(try store.status.cacheHits == before + UInt64(expected.count))
    try await store.close()
  }
}
