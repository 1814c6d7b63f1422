import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("The cache of decoded objects")
struct ObjectCacheTests {
  private final class Number: Sendable {
    let value: Int

    init(_ value: Int) { self.value = value }
  }

  private static func row(_ value: Int, at sequence: UInt64, bytes: Int = 36) -> ObjectCache.Row {
    ObjectCache.Row(Number(value), at: sequence, isCached: false, bytes: bytes)
  }

  private static func ticket(
    _ cache: ObjectCache, _ number: Int, check: Int = 0, owner: UInt32 = 1,
    epoch: UInt64? = 1
  ) -> ObjectCache.Ticket {
    let hash = UInt64(number + 1) &* 0x9E37_79B9_7F4A_7C15
    return cache.ticket((hash, UInt64(check)), owner: owner, epoch: epoch)
  }

  private static func value(_ row: ObjectCache.Row?) -> Int? { (row?.box as? Number)?.value }

  @Test("it keeps what is used again within its bounds, and lets the others go, oldest first")
  func bounded() {
    let cache = ObjectCache(limitBytes: 100_000)
    for number in 0..<10_000 {
      cache.keep(Self.row(number, at: 1), Self.ticket(cache, number), isNewest: true)
      #expect(Self.value(cache.newest(Self.ticket(cache, 0))) == 0)
      #expect(cache.bytes <= 100_000)
    }
    let kept = (0..<10_000).filter { cache.newest(Self.ticket(cache, $0)) != nil }
    #expect(kept.count > 500)
    // Parts fill evenly, but not to the entry.
    #expect(kept.dropFirst().allSatisfy { $0 > 8_000 }, "\(kept.prefix(5))")
  }

  @Test("an object counts as the newest of its key until the key is forgotten")
  func epochs() {
    let cache = ObjectCache(limitBytes: 100_000)
    let (before, since) = (Self.ticket(cache, 1), Self.ticket(cache, 1, epoch: 2))
    cache.keep(Self.row(7, at: 5), before, isNewest: true)
    #expect(Self.value(cache.newest(before)) == 7)
    #expect(cache.newest(since) == nil)
    // The index says that another key was written, or that this one was.
    #expect(cache.row(since, at: 6) == nil)
    let found = cache.row(since, at: 5)
    #expect(Self.value(found) == 7)
    if let found { cache.keep(found, since, isNewest: true) }
    #expect(Self.value(cache.newest(since)) == 7)
    #expect(cache.newest(before) == nil)
  }

  @Test("without a hot cache, or as a version of the past, an object is never the newest by itself")
  func withoutEpochs() {
    let cache = ObjectCache(limitBytes: 100_000)
    let off = Self.ticket(cache, 1, epoch: nil)
    cache.keep(Self.row(7, at: 5), off, isNewest: true)
    cache.keep(Self.row(8, at: 4), Self.ticket(cache, 2), isNewest: false)
    #expect(cache.newest(off) == nil)
    #expect(cache.newest([off, Self.ticket(cache, 2)]).allSatisfy { $0 == nil })
    #expect(Self.value(cache.row(off, at: 5)) == 7)
    #expect(Self.value(cache.row(Self.ticket(cache, 2), at: 4)) == 8)
  }

  @Test("objects of two collections with one key do not mix")
  func owners() {
    let cache = ObjectCache(limitBytes: 100_000)
    let owners = (0..<2).map { _ in cache.nextOwner() }
    #expect(owners[0] != owners[1])
    let tickets = owners.map { Self.ticket(cache, 1, owner: $0) }
    cache.keep(Self.row(1, at: 5), tickets[0], isNewest: true)
    #expect(cache.newest(tickets[1]) == nil)
    cache.keep(Self.row(2, at: 5), tickets[1], isNewest: true)
    #expect(cache.newest(tickets).map(Self.value) == [1, 2])
  }

  @Test("objects of two keys that share a hash do not mix")
  func sharedHash() {
    let cache = ObjectCache(limitBytes: 100_000)
    cache.keep(Self.row(1, at: 5), Self.ticket(cache, 1, check: 1), isNewest: true)
    #expect(cache.newest(Self.ticket(cache, 1, check: 2)) == nil)
    #expect(cache.row(Self.ticket(cache, 1, check: 2), at: 5) == nil)
    #expect(Self.value(cache.newest(Self.ticket(cache, 1, check: 1))) == 1)
  }

  @Test("an object of a state that was given up counts no more, though it is still there")
  func invalidated() {
    let cache = ObjectCache(limitBytes: 100_000)
    cache.keep(Self.row(1, at: 5), Self.ticket(cache, 1), isNewest: true)
    cache.invalidate()
    #expect(cache.bytes > 0)
    let now = Self.ticket(cache, 1)
    #expect(cache.newest(now) == nil)
    #expect(cache.newest([now])[0] == nil)
    #expect(cache.row(now, at: 5) == nil)
  }

  @Test("an object that was looked up before everything was forgotten is not kept")
  func forgotten() {
    let cache = ObjectCache(limitBytes: 100_000)
    let before = Self.ticket(cache, 1)
    cache.keep(Self.row(1, at: 5), before, isNewest: true)
    cache.removeAll()
    #expect(cache.newest(before) == nil)
    #expect(cache.bytes == 0)
    cache.keep(Self.row(1, at: 5), before, isNewest: true)
    #expect(cache.row(Self.ticket(cache, 1), at: 5) == nil)
  }
}
