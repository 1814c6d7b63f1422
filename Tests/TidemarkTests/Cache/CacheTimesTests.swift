import Testing
import Tidemark
import TidemarkTestKit

@Suite("What a cached entry says, and its times")
struct CacheTimesTests {
  private let machine = Machine()

  @Test("creation, update, validation, last use and uses are kept apart, also over a restart")
  func times() async throws {
    let start = machine.clock.now().milliseconds
    func seconds(_ time: Timestamp?) -> Int64? { time.map { ($0.milliseconds - start) / 1000 } }
    var store = try machine.open()
    var cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(100)))
    try await cache.put("k", [1])
    machine.clock.advance(by: .seconds(10))
    try await cache.put("k", [2])
    machine.clock.advance(by: .seconds(10))
    try await cache.touch("k")
    machine.clock.advance(by: .seconds(10))
    _ = try cache.value(forKey: "k")
    machine.clock.advance(by: .seconds(10))
    _ = try cache.value(forKey: "k")
    machine.clock.advance(by: .seconds(10))
    // Looks are no uses: scans, counts, questions about validity.
    _ = try (cache.entries(), cache.isValid("k"), cache.contains("k"), cache.status)
    try await store.close()
    store = try machine.open()
    cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(100)))
    let scanned = try #require(try cache.entries().first)
    #expect(seconds(scanned.lastUse) == 40 && scanned.uses == 2)
    let entry = try #require(try cache.entry(forKey: "k"))
    #expect(seconds(entry.created) == 0 && seconds(entry.updated) == 10)
    #expect(seconds(entry.validated) == 20 && seconds(entry.validUntil) == 120)
    try await store.close()
  }

  @Test("entry(forKey:) keeps the creation time when a compaction drops the key's first version")
  func creationAfterCompaction() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    try await cache.put("k", [1])
    machine.clock.advance(by: .seconds(10))
    try await cache.put("k", [2])
    let before = try #require(try cache.entry(forKey: "k"))
    #expect(before.created != before.updated)
    try await store.compact()
    for _ in 0..<3 {
      let entry = try #require(try cache.entry(forKey: "k"))
      #expect(entry.created == before.created && entry.updated == before.updated)
    }
    try await store.close()
  }

  @Test("entry(forKey:) returns the same from log and hot cache after every kind of write")
  func entriesFromMemory() async throws {
    var store = try machine.open()
    var cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    /// What the entry says, but for its uses.
    func facts() throws -> [String] {
      guard let entry = try cache.entry(forKey: "k") else { return [] }
      return [
        "\(entry.key) \(entry.value) \(entry.labels) \(entry.hash ?? []) \(entry.isOwned)",
        "\(entry.isValid) \(entry.validated) \(entry.validUntil.map { "\($0)" } ?? "never")",
        "\(entry.created.map { "\($0)" } ?? "unknown") \(entry.updated)",
      ]
    }
    let changes: [(Tidemark.Cache<[UInt8]>, Store) async throws -> Void] = [
      { cache, _ in
        try await cache.put("k", [1, 2], labels: ["x", "y"], hash: [9], maxAge: .seconds(5))
      },
      { cache, _ in try await cache.touch("k") },
      { cache, _ in try await cache.touch("k", hash: [7, 8], maxAge: .seconds(9)) },
      { cache, _ in try await cache.markStale(keys: ["k"]) },
      { cache, _ in try await cache.put("k", []) },
      { cache, _ in try await cache.put("k", [UInt8](repeating: 3, count: 880), hash: [5]) },
      { cache, _ in try await cache.put("k", [UInt8](repeating: 3, count: 2_000)) },
      { _, store in try await store.put("a/k", [4]) },
      { _, store in try await store.delete("a/k") },
    ]
    for (number, change) in changes.enumerated() {
      machine.clock.advance(by: .seconds(1))
      try await change(cache, store)
      let afterChange = (try facts(), try facts())
      try await store.close()
      store = try machine.open()
      cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
      let afterOpening = (try facts(), try facts())
      #expect(afterChange.0 == afterChange.1, "change \(number)")
      #expect(afterOpening == afterChange, "change \(number)")
    }
    try await store.close()
  }
}
