import Testing

@testable import TidemarkEngine

@Suite struct HotCacheThreadTests {
  /// A value that names its key and sequence at both ends.
  private static func value(_ number: Int, _ sequence: UInt64) -> [UInt8] {
    CacheKeys.value(number, sequence, count: Int(sequence &* 97 % 2000))
  }

  @Test("readers beside writers see values whole, and a writer sees only its last")
  func hammer() throws {
    let cache = HotCache(limitBytes: 100_000, seed: 1)
    let failures = Lock<[String]>([])
    let (hits, areDone) = (Lock(0), Lock(false))
    let writers = try (0..<2).map { writer in
      try WorkerThread(name: "writer \(writer)") {
        var random = CacheRandom(UInt64(writer))
        var last: [Int: UInt64] = [:]
        for sequence in UInt64(1)...15_000 {
          let number = random.below(40) * 2 + writer
          let key = CacheKeys.key(number)
          switch random.below(8) {
          case 0:
            cache.drop(key)
            last[number] = nil
          case 1..<4:
            let found = cache.get(key)?.sequence
            if let found, found != last[number] {
              failures.withLock { $0.append("writer \(writer) at \(sequence): \(found)") }
            }
          default:
            cache.put(key, Self.value(number, sequence), sequence: sequence)
            last[number] = sequence
          }
        }
      }
    }
    let readers = try (0..<2).map { reader in
      try WorkerThread(name: "reader \(reader)") {
        var random = CacheRandom(UInt64(100 + reader))
        // Writers that come late must be read beside, and a cache that finds nothing ends this.
        for _ in 0..<100_000_000 {
          if areDone.withLock({ $0 }), hits.withLock({ $0 }) > 1000 { break }
          let number = random.below(80)
          guard let found = cache.get(CacheKeys.key(number)) else { continue }
          hits.withLock { $0 += 1 }
          if found.value != Self.value(number, found.sequence) {
            failures.withLock { $0.append("torn value of key \(number)") }
          }
        }
      }
    }
    for thread in writers { thread.join() }
    areDone.withLock { $0 = true }
    for thread in readers { thread.join() }
    #expect(failures.withLock { $0 } == [])
    #expect(hits.withLock { $0 } > 1000)
    #expect(cache.bytes <= 100_000)
  }

  @Test("readers never bring back a value that its key's writer has replaced")
  func replaced() throws {
    let cache = HotCache(limitBytes: 1 << 20, seed: 1)
    let key = CacheKeys.key(1)
    let truth = Lock(UInt64(0))
    let (isOver, inserted, stale) = (Lock(false), Lock(0), Lock(0))
    let readers = try (0..<2).map { reader in
      try WorkerThread(name: "reader \(reader)") {
        while !isOver.withLock({ $0 }) {
          let hash = cache.hash(key)
          let epoch = cache.epoch(hash)
          let sequence = truth.withLock { $0 }
          let value = Self.value(1, sequence)
          cache.insert(
            key.rawSpan, hash: hash, sequence: sequence, value: value.rawSpan, epoch: epoch)
          inserted.withLock { $0 += 1 }
        }
      }
    }
    while inserted.withLock({ $0 }) == 0 {}
    for sequence in UInt64(1)...20_000 {
      truth.withLock { $0 = sequence }
      cache.drop(key)
      if let found = cache.get(key)?.sequence, found != sequence { stale.withLock { $0 += 1 } }
    }
    isOver.withLock { $0 = true }
    for thread in readers { thread.join() }
    #expect(stale.withLock { $0 } == 0)
    #expect(inserted.withLock { $0 } > 0)
  }

  @Test("a value that was looked up before its key was forgotten is not kept")
  func epoch() {
    let cache = HotCache(limitBytes: 1 << 20, seed: 1)
    let key = CacheKeys.key(1)
    for forgets in [true, false] {
      let epoch = cache.epoch(cache.hash(key))
      if forgets { cache.drop(key) }
      cache.insert(
        key.rawSpan, hash: cache.hash(key), sequence: 7, value: key.rawSpan, epoch: epoch)
      #expect((cache.get(key) == nil) == forgets)
    }
    let epoch = cache.epoch(cache.hash(key))
    cache.removeAll()
    cache.insert(key.rawSpan, hash: cache.hash(key), sequence: 7, value: key.rawSpan, epoch: epoch)
    #expect(cache.get(key) == nil)
  }

  @Test("forgetting everything beside readers and a writer leaves no torn value")
  func forgetting() throws {
    let cache = HotCache(limitBytes: 1 << 20, seed: 1)
    let failures = Lock(0)
    let threads = try (0..<3).map { role in
      try WorkerThread(name: "role \(role)") {
        var random = CacheRandom(UInt64(role))
        for sequence in UInt64(1)...8000 {
          let number = random.below(300)
          switch role {
          case 0: cache.put(CacheKeys.key(number), Self.value(number, sequence), sequence: sequence)
          case 1: if sequence % 40 == 0 { cache.removeAll() }
          default:
            guard let found = cache.get(CacheKeys.key(number)) else { continue }
            if found.value != Self.value(number, found.sequence) { failures.withLock { $0 += 1 } }
          }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(failures.withLock { $0 } == 0)
  }
}
