import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Reading rows ahead")
struct RowReaderTests {
  /// A store of many small segments with values of all lengths, also of several blocks, and with
  /// touches; and what is in it.
  private func filled(
    _ store: TestStore, seed: UInt64
  ) throws -> (engine: Engine, values: [String: String]) {
    var chance = SeededGenerator(seed: seed)
    var values: [String: String] = [:]
    let engine = try store.open(seed: seed)
    for number in 0..<900 {
      let key = "key/\(100 + chance.int(below: 400))"
      if values[key] != nil, chance.int(below: 5) == 0 {
        try engine.touch(key)
        continue
      }
      let length = number % 97 == 0 ? 90_000 : chance.int(below: 3) * chance.int(below: 900)
      let value = String(repeating: "\(number) ", count: length / 4)
      try engine.put(key, value)
      values[key] = value
    }
    return (engine, values)
  }

  private func scan(_ engine: Engine, descending: Bool, limit: Int? = nil) throws -> [String] {
    var query = ScanQuery()
    query.descending = descending
    var rows: [String] = []
    let scan = EngineScan(engine.reader, query, view: try engine.reader.view())
    try scan.forEach(limit: limit, values: true) { (key, value) throws(TidemarkError) in
      let (key, value) = ([UInt8](copying: key), [UInt8](copying: value))
      rows.append(String(decoding: key + [61] + value, as: UTF8.self))
      return true
    }
    return rows
  }

  @Test(
    "a scan gives each row its value, whatever its length and wherever it lies",
    arguments: 0..<4)
  func values(seed: UInt64) throws {
    var store = TestStore()
    store.configuration.segmentBytes = 20_000
    store.configuration.cacheBytes = seed % 2 == 0 ? 64 << 10 : 8 << 20
    let (engine, values) = try filled(store, seed: seed)
    let rows = values.map { "\($0.key)=\($0.value)" }.sorted()
    for _ in 0..<3 {
      for _ in 0..<3 {
        #expect(try scan(engine, descending: false) == rows, "seed \(seed)")
        #expect(try scan(engine, descending: true) == rows.reversed(), "seed \(seed)")
      }
      try engine.compact(CompactionOptions(dropHistory: seed > 1))
      try engine.put("key/100", values["key/100"] ?? "")
    }
    try engine.close()
  }

  @Test("the list of a segment's slots has exactly the sequences of its locator", arguments: 0..<3)
  func slots(seed: UInt64) throws {
    let (engine, _) = try filled(TestStore(), seed: seed)
    try engine.compact(CompactionOptions(dropHistory: seed == 1))
    let segment = try #require(engine.reader.reading.withLock { $0.segments.first })
    let locator = try #require(try segment.sealedLocator())
    let list = try SlotSequences(locator)
    try #require(locator.footer.sequenceCount > 300)
    for row in 0..<locator.footer.sequenceCount {
      let (sequence, slot) = try locator.sequence(row)
      #expect(list.holds(sequence, at: slot))
      #expect(!list.holds(sequence, at: slot + 1) && !list.holds(sequence, at: slot - 1))
    }
    #expect(!list.holds(1, at: -1) && !list.holds(.max, at: 0))
    try engine.close()
  }

  @Test("scans list the slots of a segment once that pays, within the bytes for caches")
  func listed() throws {
    for cacheBytes in [64 << 10, 8 << 20] {
      var store = TestStore()
      store.configuration.cacheBytes = cacheBytes
      let engine = try store.open()
      for first in stride(from: 0, to: 20_000, by: 1_000) {
        var batch = OperationBatch()
        for number in first..<(first + 1_000) {
          try batch.add(
            .put, key: bytes("key/\(number * 7 % 20_000)").rawSpan,
            value: bytes("value \(number)").rawSpan)
        }
        _ = try engine.commit(batch)
      }
      try engine.compact()
      #expect(try scan(engine, descending: false, limit: 300).count == 300)
      #expect(engine.reader.caches.sequences.bytes == 0)
      let rows = try scan(engine, descending: false)
      #expect(try scan(engine, descending: false) == rows && rows.count == 20_000)
      let isListed = engine.reader.caches.sequences.bytes > 0
      #expect(isListed == (cacheBytes > 1 << 20))
      engine.reader.shareCacheBytes()
      #expect(
        engine.reader.caches.bytes + engine.reader.hotCache.bytes <= max(cacheBytes, 128 << 10))
      try engine.delete("key/1")
      try engine.compact(CompactionOptions(dropHistory: true))
      #expect(engine.reader.caches.sequences.bytes == 0)
      try engine.close()
    }
  }

  @Test("a scan of values of several blocks keeps none of their blocks")
  func longValues() throws {
    var store = TestStore()
    store.configuration.cacheBytes = 8 << 20
    let engine = try store.open()
    let value = String(repeating: "word ", count: 8_000)
    for number in 0..<20 { try engine.put("key/\(number)", value + "\(number)") }
    for _ in 0..<2 {
      engine.reader.caches.removeAll()
      #expect(try scan(engine, descending: false).count == 20)
      #expect(engine.reader.caches.blocks.bytes == 0)
      try engine.compact()
    }
    try engine.close()
  }

  @Test("a cache answers for many addresses as for each", arguments: 0..<5)
  func manyAddresses(seed: UInt64) {
    var chance = SeededGenerator(seed: seed)
    let cache = ClockCache<BlockAddress, [UInt8]>(limitBytes: 4_000)
    func address() -> BlockAddress {
      BlockAddress(segmentID: 1, salt: 2, offset: UInt32(chance.int(below: 200)))
    }
    var found: [[UInt8]?] = [[9]]
    cache.values(for: [address()], into: &found)
    #expect(found == [nil])
    for _ in 0..<200 {
      for _ in 0..<chance.int(below: 20) {
        let place = address()
        cache.insert([UInt8(truncatingIfNeeded: place.offset)], for: place, bytes: 100)
      }
      let wanted = (0..<chance.int(below: 40)).map { _ in address() }
      cache.values(for: wanted, into: &found)
      #expect(found == wanted.map { cache.value(for: $0) }, "seed \(seed)")
      for (place, value) in zip(wanted, found) {
        #expect(value == nil || value == [UInt8(truncatingIfNeeded: place.offset)])
      }
    }
  }
}
