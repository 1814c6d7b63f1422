import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit
import Testing

/// Readers that have found nothing of use, and whose question comes when another one has brought
/// the answer: `automatic` asks whether there is a network right behind the look.
@Suite("Reads through a cache that another reader is ahead of")
struct OvertakenReadTests {
  private let machine = Machine()

  /// A source that counts how often it is asked, and one thing that happens behind the first look.
  private func source(
    _ asked: Lock<Int>, _ meanwhile: @escaping @Sendable () throws -> Void
  ) -> CacheSource<[UInt8]> {
    let hasHappened = Lock(false)
    return CacheSource(
      isOnline: {
        let isFirst = hasHappened.withLock { hasHappened in
          defer { hasHappened = true }
          return !hasHappened
        }
        if isFirst { #expect(throws: Never.self) { try meanwhile() } }
        return true
      },
      fetch: { _ in
        asked.withLock { $0 += 1 }
        return .value(Array("asked again".utf8))
      })
  }

  @Test("a value that has come since the reader looked is read, and its source is not asked again")
  func value() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    let asked = Lock(0)
    let read = try await cache.read(
      "k", from: source(asked) { try cache.blocking.put("k", Array("came".utf8)) })
    #expect(read.kind == .storedOnly && read.value?.text == "came" && asked.withLock { $0 } == 0)
    let counts = cache.counts
    #expect(counts.fetches == 0 && counts.requestsAvoided == 1)
    #expect(counts.misses == 1 && counts.hits == 0, "one read counts once")
    try await store.close()
  }

  @Test("a value that was found to be right since the reader looked is not asked about again")
  func touch() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    try await cache.put("k", Array("old".utf8))
    machine.clock.advance(by: .seconds(70))
    let asked = Lock(0)
    let read = try await cache.read("k", from: source(asked) { try cache.blocking.touch("k") })
    #expect(read.value?.text == "old" && read.stored?.isValid == true)
    #expect(asked.withLock { $0 } == 0)
    try await store.close()
  }

  @Test("a value that its source has given up since the reader looked is not asked about again")
  func absence() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    try await cache.put("k", Array("old".utf8))
    machine.clock.advance(by: .seconds(70))
    let (asked, now) = (Lock(0), machine.clock.now().milliseconds)
    let read = try await cache.read(
      "k",
      from: source(asked) {
        try cache.blocking.remove("k")
        cache.region.flights.noteAbsence(cache.ask(about: "k"), until: now + 1_000, now: now)
      })
    #expect(read.kind == .neither && read.error == nil && asked.withLock { $0 } == 0)
    try await store.close()
  }

  @Test("the user's own value, written since the reader looked, is not asked about")
  func owned() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    let asked = Lock(0)
    let read = try await cache.read(
      "k", from: source(asked) { try store.blocking.put("a/k", Array("mine".utf8)) })
    #expect(read.value?.text == "mine" && read.error == nil && asked.withLock { $0 } == 0)
    try await store.close()
  }
}
