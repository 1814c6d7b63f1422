import Testing
import Tidemark
import TidemarkTestKit

@Suite("Times of a cached entry")
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
}
