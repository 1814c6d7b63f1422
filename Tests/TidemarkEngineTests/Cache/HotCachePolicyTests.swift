import Testing

@testable import TidemarkEngine

@Suite struct HotCachePolicyTests {
  private let limit = 4 << 20

  /// How many of some keys are there. Looks as a reader would, so it counts as use.
  private func kept(_ cache: HotCache, _ keys: Range<Int>) -> Int {
    keys.count { cache.get(CacheKeys.key($0)) != nil }
  }

  private func put(_ cache: HotCache, _ keys: Range<Int>) {
    let value = [UInt8](repeating: 7, count: 250)
    for number in keys { cache.put(CacheKeys.key(number), value, sequence: 1) }
  }

  @Test("keys in use outlive a scan of many times the cache")
  func scan() {
    let cache = HotCache(limitBytes: limit, seed: 1)
    put(cache, 0..<5000)
    for _ in 0..<3 { #expect(kept(cache, 0..<5000) == 5000) }
    for start in stride(from: 100_000, to: 350_000, by: 1000) {
      put(cache, start..<(start + 1000))
      #expect(kept(cache, (start + 900)..<(start + 1000)) > 0)
    }
    #expect(kept(cache, 0..<5000) > 4900)
  }

  @Test("keys out of use make room for keys in use")
  func change() {
    let cache = HotCache(limitBytes: limit, seed: 1)
    put(cache, 0..<14_000)
    for _ in 0..<3 { _ = kept(cache, 0..<14_000) }
    // As a reader does: what is missing is read from the log and inserted.
    for _ in 0..<8 {
      for number in 20_000..<30_000 where cache.get(CacheKeys.key(number)) == nil {
        put(cache, number..<(number + 1))
      }
    }
    #expect(kept(cache, 20_000..<30_000) > 9000)
  }

  @Test("a key that comes back soon after it left stays through a scan")
  func ghosts() {
    let cache = HotCache(limitBytes: limit, seed: 1)
    // Fills the cache, so that the next keys leave the small queue unused.
    put(cache, 100_000..<120_000)
    put(cache, 0..<500)
    put(cache, 120_000..<124_000)
    #expect(kept(cache, 0..<500) == 0)
    put(cache, 0..<500)
    put(cache, 130_000..<136_000)
    #expect(kept(cache, 0..<500) > 450)
    #expect(kept(cache, 130_000..<134_000) < 200)
  }

  @Test("a zipfian load hits about as often as the best possible fixed choice")
  func zipf() {
    let keys = 60_000
    var weights = (1...keys).map { 1 / Double($0) }
    for rank in 1..<keys { weights[rank] += weights[rank - 1] }
    let total = weights[keys - 1]
    let cache = HotCache(limitBytes: limit, seed: 1)
    var random = CacheRandom(3)
    var hits = 0
    let reads = 100_000
    for read in 0..<(2 * reads) {
      let drawn = Double(random.next() >> 11) / Double(1 << 53) * total
      let rank = rankOf(drawn, weights)
      if cache.get(CacheKeys.key(rank)) != nil {
        if read >= reads { hits += 1 }
      } else {
        put(cache, rank..<(rank + 1))
      }
    }
    let best = weights[min(cache.count, keys) - 1] / total
    #expect(Double(hits) / Double(reads) > 0.93 * best)
  }

  private func rankOf(_ drawn: Double, _ sums: [Double]) -> Int {
    var low = 0
    var high = sums.count - 1
    while low < high {
      let middle = (low + high) / 2
      if sums[middle] < drawn { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
