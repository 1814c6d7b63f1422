import Testing

@testable import TidemarkEngine

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

@Suite struct HotCacheTests {
  @Test("an inserted value is found with its sequence, and gone once it is removed")
  func insertAndRemove() {
    let cache = HotCache(limitBytes: 1 << 20, seed: 1)
    for count in [0, 1, 7, 8, 9, 250, 1024, 1025, 4096, 7000] {
      let key = CacheKeys.key(count)
      let value = CacheKeys.value(count, 5, count: count)
      #expect(cache.get(key)?.sequence == nil)
      cache.put(key, value, sequence: 5)
      #expect((cache.get(key)?.value == value) as Bool, "value of \(count) bytes")
      #expect(cache.get(key)?.sequence == 5)
      cache.drop(key)
      #expect(cache.get(key)?.sequence == nil)
    }
    #expect(cache.count == 0)
    #expect(cache.statistics == (hits: 20, misses: 20))
  }

  #if !canImport(Darwin)
    @Test("the first values take little memory of a large cache, as pages are small at first")
    func firstTouch() throws {
      let cache = HotCache(limitBytes: 1 << 30, seed: 1)
      for i in 0..<8 {
        cache.put(CacheKeys.key(i), CacheKeys.value(i, 1, count: 200), sequence: 1)
      }
      let words = try #require(cache.words)
      let memory = words.plainBytes(0, words.count)
      let page = sysconf(Int32(_SC_PAGESIZE))
      var pages = [UInt8](repeating: 0, count: (memory.count + page - 1) / page)
      #expect(mincore(memory.baseAddress, memory.count, &pages) == 0)
      #expect(pages.count { $0 & 1 != 0 } * page < 1 << 20)
      withExtendedLifetime(cache) {}
    }
  #endif

  @Test("keys of 1 and of 65,535 bytes are kept, none and longer ones are not")
  func keyLengths() {
    let cache = HotCache(limitBytes: 32 << 20, seed: 1)
    for (count, isKept) in [(0, false), (1, true), (65_535, true), (65_536, false)] {
      let key = [UInt8](repeating: 3, count: count)
      cache.put(key, [1, 2, 3], sequence: 1)
      #expect((cache.get(key) != nil) == isKept, "key of \(count) bytes")
    }
  }

  @Test("a newer value replaces, of any length; an older one does not")
  func replacement() {
    let cache = HotCache(limitBytes: 1 << 20, seed: 1)
    for (sequence, count) in [(10, 100), (11, 100), (12, 101), (13, 3000), (14, 0)] {
      let value = CacheKeys.value(7, UInt64(sequence), count: count)
      cache.put([7], value, sequence: UInt64(sequence))
      #expect((cache.get([7])?.value == value) as Bool)
      cache.put([7], [9, 9], sequence: 9)
      #expect(cache.get([7])?.sequence == UInt64(sequence))
      #expect(cache.count == 1)
    }
  }

  @Test(
    "a note is told with the value that it was given to, and with no other",
    arguments: [0, 1, 250, 5000])
  func notes(count: Int) {
    let cache = HotCache(limitBytes: 1 << 20, seed: 1)
    let (key, value) = (CacheKeys.key(1), CacheKeys.value(1, 5, count: count))
    let first = HotNote(first: 77, second: 78)
    func insert(_ sequence: UInt64, awaitsNote: Bool) {
      cache.insert(
        key.rawSpan, hash: cache.hash(key), sequence: sequence, value: value.rawSpan,
        note: awaitsNote ? .unknown : nil)
    }
    func keep(_ note: HotNote, of sequence: UInt64, isCurrent: Bool = true) {
      cache.keep(note, key.rawSpan, hash: cache.hash(key), sequence: sequence) { isCurrent }
    }
    func note() -> HotNote? {
      var note: HotNote? = HotNote(first: 1, second: 1)
      var found: [UInt8]?
      _ = try? cache.read(key.rawSpan, hash: cache.hash(key), note: &note) { bytes, _ in
        found = [UInt8](copying: bytes)
      }
      #expect((found == value) as Bool)
      return note
    }
    insert(5, awaitsNote: true)
    #expect(note() == nil)
    keep(first, of: 4)
    keep(first, of: 5, isCurrent: false)
    #expect(note() == nil)
    keep(first, of: 5)
    #expect(note() == first)
    // Somebody who read the value at the same time does not take it away.
    insert(5, awaitsNote: true)
    insert(5, awaitsNote: false)
    #expect(note() == first)
    // The entry moves as others come.
    for other in 2..<3_000 { cache.put(CacheKeys.key(other), value, sequence: 1); _ = note() }
    #expect(note() == first)
    insert(6, awaitsNote: true)
    #expect(note() == nil)
    insert(7, awaitsNote: false)
    keep(first, of: 7)
    #expect(note() == nil)
  }

  @Test(
    "facts stored behind a hot-cache value are returned for its sequence alone, never in the value",
    arguments: [0, 1, 250])
  func facts(count: Int) {
    let cache = HotCache(limitBytes: 1 << 20, seed: 1)
    let (key, value) = (CacheKeys.key(1), CacheKeys.value(1, 5, count: count))
    let (hash, facts) = (cache.hash(key), [UInt8](7..<50))
    var note = HotNote(first: 77, second: 78)
    note.factBytes = facts.count
    func insert(_ sequence: UInt64, _ content: [UInt8], _ note: HotNote?) {
      cache.insert(
        key.rawSpan, hash: hash, sequence: sequence, value: content.rawSpan, note: note)
    }
    func expect(_ expected: [UInt8]?, of sequence: UInt64) {
      #expect(cache.get(key)?.value == value)
      #expect(cache.facts(key.rawSpan, hash: hash, ofEntry: sequence) == expected)
      var copied: [UInt8] = []
      let length = cache.copy(
        key.rawSpan, hash: hash, ofEntry: sequence, into: &copied, at: 0)
      #expect(length.map { Array(copied[..<$0]) } == value)
    }
    insert(5, value + facts, note)
    expect(facts, of: 5)
    #expect(cache.facts(key.rawSpan, hash: hash, ofEntry: 4) == nil)
    // Others that have read the value at the same time do not know of the facts.
    cache.keep(HotNote(first: 1, second: 2), key.rawSpan, hash: hash, sequence: 5) { true }
    insert(5, value, .unknown)
    insert(5, value, nil)
    expect(facts, of: 5)
    // The entry moves as others come.
    for other in 2..<3_000 {
      cache.put(CacheKeys.key(other), value, sequence: 1); _ = cache.get(key)
    }
    expect(facts, of: 5)
    insert(6, value, .unknown)
    expect(nil, of: 6)
    insert(6, value + facts, note)
    expect(facts, of: 6)
    insert(7, value, nil)
    expect(nil, of: 7)
  }

  @Test("a value that is too long is not kept, nor is the one before it")
  func tooLong() {
    let cache = HotCache(limitBytes: 1 << 20, seed: 1)
    cache.put([7], [1], sequence: 1)
    cache.put([7], [UInt8](repeating: 0, count: 20 << 10), sequence: 2)
    #expect(cache.get([7])?.sequence == nil)
    #expect(cache.count == 0)
  }

  @Test("without a limit's worth of bytes nothing is kept", arguments: [0, 1, 16_383])
  func switchedOff(limit: Int) {
    let cache = HotCache(limitBytes: limit, seed: 1)
    cache.put([7], [1], sequence: 1)
    cache.drop([8])
    cache.removeAll()
    #expect(cache.get([7])?.sequence == nil)
    #expect(cache.bytes == 0)
  }

  @Test("a value that fits in is kept whole, and a small store takes little memory")
  func lazyGrowth() {
    let cache = HotCache(limitBytes: 32 << 20, seed: 1)
    #expect(cache.bytes < 16 << 10)
    for number in 0..<200 { put(cache, number, count: 250) }
    #expect(cache.bytes < 128 << 10)
    for number in 200..<80_000 { put(cache, number, count: 250) }
    let lost = (0..<80_000).count { cache.get(CacheKeys.key($0)) == nil }
    #expect(lost == 0)
    #expect(cache.bytes < 30 << 20)
  }

  @Test("forgetting everything gives the memory back and leaves a cache that works")
  func removeAll() {
    let cache = HotCache(limitBytes: 4 << 20, seed: 1)
    let fresh = cache.bytes
    for round in 0..<3 {
      for number in 0..<20_000 { put(cache, number, count: 250) }
      #expect(cache.bytes > 3 << 20, "round \(round)")
      cache.removeAll()
      #expect(cache.count == 0)
      #expect(cache.bytes == fresh)
      #expect((0..<20_000).allSatisfy { cache.get(CacheKeys.key($0)) == nil })
    }
  }

  @Test("a body may call the cache, also for the key it looks at, ten deep")
  func reentrancy() throws {
    let cache = HotCache(limitBytes: 4 << 20, seed: 1)
    let value = CacheKeys.value(7, 1, count: 20_000)
    #expect(try nest(cache, [7], value, depth: 10) == 10)
    #expect(cache.get([7])?.sequence == nil)
  }

  private func nest(_ cache: HotCache, _ key: [UInt8], _ value: [UInt8], depth: Int) throws -> Int {
    guard depth > 0 else {
      cache.drop(key)
      return 0
    }
    cache.put(key, value, sequence: 1)
    var inner = -1000
    _ = try cache.read(key.rawSpan, hash: cache.hash(key)) { seen, _ in
      let deeper = (try? nest(cache, key, value, depth: depth - 1)) ?? -1000
      if seen.isEqual(to: value.rawSpan) { inner = deeper + 1 }
    }
    return inner
  }

  @Test("an error that a body throws comes out")
  func thrownError() {
    let cache = HotCache(limitBytes: 1 << 20, seed: 1)
    for count in [10, 5000] {
      cache.put([7], CacheKeys.value(7, 1, count: count), sequence: UInt64(count))
      for _ in 0..<10 {
        #expect(throws: TidemarkError.self) {
          try cache.read([7].rawSpan, hash: cache.hash([7])) { (_, _) throws(TidemarkError) in
            throw TidemarkError(.closed, "no")
          }
        }
      }
    }
  }

  private func put(_ cache: HotCache, _ number: Int, count: Int) {
    cache.put(CacheKeys.key(number), CacheKeys.value(number, 1, count: count), sequence: 1)
  }
}
