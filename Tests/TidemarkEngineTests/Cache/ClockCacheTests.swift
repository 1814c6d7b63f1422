import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("The cache of decoded blocks")
struct ClockCacheTests {
  @Test("a cache has what was put in last, within its bounds, whatever is put in", arguments: 0..<4)
  func model(seed: UInt64) {
    var chance = SeededGenerator(seed: seed)
    let cache = ClockCache<BlockAddress, UInt64>(limitBytes: 4_000)
    var limit = 4_000
    var inserted: [UInt64: UInt64] = [:]
    for step in 0..<20_000 {
      let number = chance.next() % 300
      let address = Self.address(number)
      switch chance.next() % 100 {
      case 0: cache.removeAll(of: UInt32(chance.next() % 3))
      case 1:
        limit = Int(chance.next() % 6_000)
        cache.setLimit(limit)
      case 2..<50:
        if let value = cache.value(for: address) {
          #expect(value == inserted[number], "seed \(seed), step \(step)")
        }
      default:
        if cache.value(for: address) == nil {
          inserted[number] = UInt64(step)
          cache.insert(UInt64(step), for: address, bytes: Int(chance.next() % 200) + 1)
        }
      }
      #expect(cache.bytes <= limit, "seed \(seed), step \(step)")
    }
  }

  @Test("a store that is forgotten leaves nothing, and takes nothing of the others along")
  func stores() {
    let cache = ClockCache<BlockAddress, UInt64>(limitBytes: 100_000)
    for number in UInt64(0)..<300 {
      cache.insert(number, for: Self.address(number), bytes: 100)
    }
    cache.removeAll(of: 1)
    #expect(cache.bytes == 150 * 100)
    for number in UInt64(0)..<300 {
      let value = cache.value(for: Self.address(number))
      #expect(value == (number.isMultiple(of: 2) ? number : nil))
    }
    cache.removeAll(of: 0)
    #expect(cache.bytes == 0)
  }

  @Test("an element asked for again outlives one that came by once")
  func secondChance() {
    let cache = ClockCache<BlockAddress, UInt64>(limitBytes: 1_000)
    let first: [UInt64] = [0, 1, 2, 3, 4]
    for number in first { cache.insert(number, for: Self.address(number), bytes: 100) }
    for number in first { #expect(cache.value(for: Self.address(number)) != nil) }
    for number in UInt64(100)..<110 {
      cache.insert(number, for: Self.address(number), bytes: 100)
    }
    #expect(first.count { cache.value(for: Self.address($0)) != nil } >= 4)
  }

  private static func address(_ number: UInt64) -> BlockAddress {
    BlockAddress(
      segmentID: number % 7, salt: UInt32(number % 3), offset: UInt32(number * 64),
      store: UInt32(number % 2))
  }
}
