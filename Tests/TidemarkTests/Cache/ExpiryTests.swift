import Testing
import Tidemark
import TidemarkTestKit

@Suite("Cached entries that expire")
struct ExpiryTests {
  private let machine = Machine()

  private func keys(_ cache: Cache<[UInt8]>) throws -> Int { try cache.entries().count }

  @Test("entries that have been stale for longer than the policy keeps them go with later writes")
  func expired() async throws {
    let store = try machine.open()
    let policy = CachePolicy(maxAge: .seconds(60), maxStale: .seconds(600), capacity: nil)
    let cache = try store.cache(prefix: "c/", policy: policy)
    for number in 0..<100 { try await cache.put("old \(number)", [1]) }
    machine.clock.advance(by: .seconds(659))
    for number in 0..<30 { try await cache.put("new \(number)", [1]) }
    #expect(try keys(cache) == 130 && cache.counts.expired == 0)
    machine.clock.advance(by: .seconds(2))
    for number in 0..<30 { try await cache.put("new \(number)", [1]) }
    #expect(try keys(cache) == 30)
    #expect(cache.counts.expired == 100 && cache.counts.evictions == 0)
    #expect(try cache.count == 30)
    try await store.close()
  }

  @Test("entries without a longest staleness stay, as do those that were validated again")
  func kept() async throws {
    let store = try machine.open()
    let endless = try store.cache(prefix: "endless/")
    let bounded = try store.cache(
      prefix: "bounded/", policy: CachePolicy(maxStale: .zero, capacity: nil))
    try await endless.put("a", [1])
    for name in ["touched", "marked", "long"] {
      try await bounded.put(name, [1], maxAge: name == "long" ? .seconds(9_000) : nil)
    }
    machine.clock.advance(by: .seconds(299))
    try await bounded.touch("touched")
    machine.clock.advance(by: .seconds(2))
    try await bounded.markStale(keys: ["marked"])
    for _ in 0..<4 { try await bounded.put("other", [1]) }
    #expect(try endless.value(forKey: "a") == [1])
    #expect(try bounded.entries().map(\.key) == ["long", "other", "touched"])
    try await store.close()
  }

  @Test("entries that the user owns never expire, and a write of the same key is not expired")
  func owned() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "c/", policy: CachePolicy(maxStale: .zero, capacity: nil))
    try await store.put("c/mine", "1")
    try await cache.put("a", [1])
    machine.clock.advance(by: .seconds(100_000))
    for number in UInt8(0)..<5 { try await cache.put("a", [number]) }
    #expect(try cache.value(forKey: "a") == [4])
    #expect(try store.value(forKey: "c/mine")?.text == "1")
    try await store.close()
  }

  @Test("a clock that jumps back lets nothing expire, and one that jumps ahead what is due")
  func jumps() async throws {
    let store = try machine.open()
    let cache = try store.cache(
      prefix: "c/", policy: CachePolicy(maxAge: .seconds(60), maxStale: .seconds(60), capacity: nil)
    )
    try await cache.put("a", [1])
    machine.clock.jump(by: .seconds(-1_000_000))
    for number in 0..<4 { try await cache.put("b \(number)", [1]) }
    #expect(try cache.value(forKey: "a") == [1])
    machine.clock.advance(by: .seconds(1_000_121))
    for _ in 0..<4 { try await cache.put("c", [1]) }
    #expect(try cache.entries().map(\.key) == ["c"])
    try await store.close()
  }
}
