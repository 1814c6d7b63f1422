import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCaches

@Suite("Reads through a cache without a network", .timeLimit(.minutes(20)))
struct OfflineReadTests {
  let machine = Machine()

  struct OfflineRow: Sendable, CustomTestStringConvertible {
    var policy: ReadPolicy
    /// The outcome where nothing is there, a valid value, a stale one, and one that has been stale
    /// for longer than `staleIfError`.
    var given: [String?]
    var testDescription: String { "\(policy)" }
  }

  static let offlineRows = [
    OfflineRow(policy: .refresh, given: [nil, "old", "old", nil]),
    OfflineRow(policy: .staleWhileRevalidate, given: [nil, "old", "old", "old"]),
    OfflineRow(policy: .cacheFirst, given: [nil, "old", "old", nil]),
    OfflineRow(policy: .networkFirst, given: [nil, "old", "old", nil]),
    OfflineRow(policy: .networkOnly, given: [nil, nil, nil, nil]),
    OfflineRow(policy: .cacheOnly(), given: [nil, "old", "old", "old"]),
    OfflineRow(policy: .cacheOnly(maxStale: .seconds(50)), given: [nil, "old", "old", nil]),
    OfflineRow(policy: .automatic, given: [nil, "old", "old", "old"]),
  ]

  @Test("without a network no policy asks the source", arguments: offlineRows)
  func offline(row: OfflineRow) async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    let scripted = CacheSourceTests.Source()
    let source = CacheSourceTests().source(
      scripted, staleIfError: .seconds(50), isOnline: false)
    let waits: [Duration?] = [nil, .zero, .seconds(61), .seconds(1_000_000)]
    let isFreshEnough: Set<ReadPolicy> = [.cacheFirst, .staleWhileRevalidate, .automatic]
    for (index, wait) in waits.enumerated() {
      try await cache.removeAll()
      if let wait {
        try await cache.put("k", Array("old".utf8))
        machine.clock.advance(by: wait)
      }
      var isAsked = index != 1 || !isFreshEnough.contains(row.policy)
      if case .cacheOnly = row.policy { isAsked = false }
      let read = try await cache.read("k", row.policy, from: source)
      #expect(read.value?.text == row.given[index], "\(index)")
      #expect(((read.error as? TidemarkError)?.code == .offline) == isAsked, "\(index)")
    }
    #expect(await scripted.requests.isEmpty && cache.counts.fetches == 0)
    try await store.close()
  }
}
