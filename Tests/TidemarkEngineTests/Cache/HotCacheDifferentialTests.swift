import Testing

@testable import TidemarkEngine

@Suite struct HotCacheDifferentialTests {
  @Test(
    "after random operations a cache never answers other than a dictionary, within its limit",
    arguments: [16 << 10, 100_000, 1 << 20, 5_000_000], UInt64(0)..<4)
  func againstDictionary(limit: Int, seed: UInt64) {
    run(limit: limit, seed: seed, longest: 3000, hashMask: ~0)
  }

  @Test("keys whose hashes collide are told apart", arguments: UInt64(0)..<4)
  func collisions(seed: UInt64) {
    run(limit: 200_000, seed: seed, longest: 300, hashMask: 0xf000_0000_0000_0003)
  }

  @Test("many tiny values keep to the limit as well", arguments: UInt64(0)..<2)
  func tiny(seed: UInt64) {
    run(limit: 100_000, seed: seed, longest: 4, hashMask: ~0, keys: 20_000)
  }

  private func run(
    limit: Int, seed: UInt64, longest: Int, hashMask: UInt64, keys: Int = 1500
  ) {
    var random = CacheRandom(seed)
    let cache = HotCache(limitBytes: limit, seed: seed)
    var model: [Int: (value: [UInt8], sequence: UInt64)] = [:]
    var hits = 0
    for sequence in UInt64(1)...20_000 {
      let skewed = min(random.below(keys), random.below(keys))
      let key = CacheKeys.key(skewed)
      let hash = cache.hash(key) & hashMask
      switch random.below(100) {
      case 0..<45:
        let found = cache.get(key, hash: hash)
        guard let found else { break }
        hits += 1
        let expected = model[skewed]
        guard found.value == expected?.value, found.sequence == expected?.sequence else {
          Issue.record("wrong value, limit \(limit), seed \(seed), step \(sequence)")
          return
        }
      case 45..<85:
        let value = CacheKeys.value(skewed, sequence, count: random.below(longest))
        cache.put(key, value, sequence: sequence, hash: hash)
        model[skewed] = (value, sequence)
      case 85..<99:
        cache.drop(key, hash: hash)
        model[skewed] = nil
      default:
        guard random.below(20) == 0 else { break }
        cache.removeAll()
        model = [:]
      }
      if cache.bytes > limit || cache.count > model.count {
        Issue.record("limit \(limit), seed \(seed), step \(sequence): \(cache.bytes)")
        return
      }
    }
    #expect(hits > 50, "limit \(limit), seed \(seed)")
  }

  @Test("a ring hands out no word twice and loses none", arguments: UInt64(0)..<4)
  func ring(seed: UInt64) {
    var random = CacheRandom(seed)
    let capacity = 20 + random.below(200)
    var ring = HotCacheRing(capacity: capacity)
    // Entries and gaps in order.
    var queue: [(position: Int, words: Int)] = []
    for step in 0..<1500 {
      let words = 1 + random.below(random.below(8) == 0 ? capacity : 12)
      let had = ring.hasRoom(for: words)
      let place = ring.append(words)
      #expect((place != nil) == had)
      if let place {
        if let gap = place.gap { queue.append((gap, capacity - gap)) }
        queue.append((place.position, words))
      } else if queue.isEmpty {
        Issue.record("an empty ring has room, seed \(seed), step \(step)")
        return
      } else {
        #expect(ring.head == queue[0].position)
        ring.removeHead(queue.removeFirst().words)
      }
      var owners = [Int](repeating: 0, count: capacity)
      for part in queue {
        for word in part.position..<(part.position + part.words) { owners[word] += 1 }
      }
      guard owners.allSatisfy({ $0 <= 1 }), ring.used == owners.reduce(0, +),
        ring.touched <= capacity
      else {
        Issue.record("seed \(seed), step \(step)")
        return
      }
    }
  }
}
