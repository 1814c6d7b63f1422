import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Scans and the caches")
struct ScanCacheTests {
  private let store: TestStore
  private let disk: HookedDisk
  private static let keys = 2_000

  init() {
    store = TestStore()
    disk = HookedDisk(store.disk)
  }

  /// A store whose blocks are compressed, with nothing of it in the caches.
  private func compacted(cacheBytes: Int) throws -> Engine {
    var store = store
    store.configuration.cacheBytes = cacheBytes
    let engine = try store.open(on: disk)
    for first in stride(from: 0, to: Self.keys, by: 500) {
      var batch = OperationBatch()
      for number in first..<(first + 500) {
        try batch.add(.put, key: bytes(Self.key(number)).rawSpan, value: Self.value(number).rawSpan)
      }
      _ = try engine.commit(batch)
    }
    try engine.compact()
    engine.reader.caches.removeAll()
    engine.reader.hotCache.removeAll()
    return engine
  }

  private static func key(_ number: Int) -> String { "key/\(10_000 + number)" }
  private static func value(_ number: Int) -> [UInt8] {
    bytes("{\"id\":\(number),\"text\":\"\(String(repeating: "word ", count: 40))\"}")
  }

  /// How many times the log was read during a call.
  private func reads(_ body: () throws -> Void) throws -> Int {
    let most = 1_000_000
    disk.once(.before, .read, of: "/log/", skipping: most) {}
    try body()
    return most - (disk.skipping ?? 0)
  }

  private func scan(_ engine: Engine, limit: Int? = nil) throws -> Int {
    var count = 0
    var isRight = true
    let view = try engine.reader.view()
    try EngineScan(engine.reader, ScanQuery(), view: view).forEach(limit: limit, values: true) {
      (key, value) throws(TidemarkError) in
      isRight = isRight && [UInt8](copying: key) == bytes(Self.key(count))
      isRight = isRight && [UInt8](copying: value) == Self.value(count)
      count += 1
      return true
    }
    #expect(isRight)
    return count
  }

  @Test("a scan of everything leaves all that is decoded, so that no get reads the disk after it")
  func leaves() throws {
    let engine = try compacted(cacheBytes: 8 << 20)
    #expect(try scan(engine) == Self.keys)
    var found = 0
    let reads = try reads {
      for number in 0..<Self.keys where try engine.get(Self.key(number)) != nil { found += 1 }
    }
    #expect(found == Self.keys)
    #expect(reads == 0)
    try engine.close()
  }

  @Test("a second scan of what was put key by key reads nothing of the log")
  func keepsSingles() throws {
    var store = store
    store.configuration.cacheBytes = 8 << 20
    let engine = try store.open(on: disk)
    for number in 0..<Self.keys {
      let value = String(decoding: Self.value(number), as: UTF8.self)
      try engine.put(Self.key(number), value, durability: .buffered)
    }
    engine.reader.hotCache.removeAll()
    #expect(try scan(engine, limit: 400) == 400)
    #expect(try reads { _ = try scan(engine, limit: 400) } == 0)
    try engine.close()
  }

  @Test("a long scan leaves its values in the hot cache while that has room, a short one none")
  func fills() throws {
    let engine = try compacted(cacheBytes: 8 << 20)
    #expect(try scan(engine, limit: 500) == 500)
    #expect(engine.reader.hotCache.count == 0)
    #expect(try scan(engine) == Self.keys)
    #expect(engine.reader.hotCache.count > Self.keys / 2)
    let hits = engine.reader.hotCache.statistics.hits
    let last = Self.keys - 1
    #expect(try engine.get(Self.key(last)).map(bytes) == Self.value(last))
    #expect(engine.reader.hotCache.statistics.hits == hits + 1)
    try engine.close()
  }

  @Test("a long scan takes the place of nothing in a hot cache that is full")
  func evictsNothing() throws {
    let engine = try compacted(cacheBytes: 128 << 10)
    for _ in 0..<3 { for number in 0..<Self.keys { _ = try engine.get(Self.key(number)) } }
    func kept() -> Set<Int> {
      Set(
        (0..<Self.keys).filter { number in
          let key = bytes(Self.key(number))
          let hash = KeyHash.hash(key.rawSpan, seed: engine.reader.hotCache.seed)
          return (try? engine.reader.hotCache.read(key.rawSpan, hash: hash) { _, _ in }) ?? false
        })
    }
    let before = kept()
    #expect(before.count > 50)
    #expect(try scan(engine) == Self.keys)
    #expect(kept().isSuperset(of: before))
    try engine.close()
  }

  @Test("a scan reads from the hot cache what that has, and from the log the rest")
  func readsHot() throws {
    let engine = try compacted(cacheBytes: 8 << 20)
    // Nothing at first, then some, a long one and an empty one among them, then all.
    var wanted = (0..<Self.keys).map(Self.value)
    for (number, text) in [(40, ""), (41, String(repeating: "long ", count: 900)), (70, "x")] {
      try engine.put(Self.key(number), text)
      wanted[number] = bytes(text)
    }
    for number in stride(from: 33, to: 1_500, by: 2) { _ = try engine.get(Self.key(number)) }
    for number in 600..<900 { _ = try engine.get(Self.key(number)) }
    let hits = engine.reader.hotCache.statistics.hits
    var all: [Int] = []
    for descending in [false, true] {
      engine.reader.caches.removeAll()
      var query = ScanQuery()
      query.descending = descending
      var found: [[UInt8]] = []
      let count = try reads {
        try EngineScan(engine.reader, query, view: try engine.reader.view()).forEach(
          limit: nil, values: true
        ) {
          (_, value) throws(TidemarkError) in
          found.append([UInt8](copying: value))
          return true
        }
      }
      #expect(found == (descending ? wanted.reversed() : wanted))
      all.append(count)
    }
    // The first has filled the cache.
    #expect(all[1] < all[0], "\(all)")
    #expect(engine.reader.hotCache.statistics.hits == hits, "a scan counts as no use of a value")
    try engine.close()
  }

  @Test("a scan gives its own rows, whatever the hot cache has of them meanwhile")
  func rewritten() throws {
    let engine = try compacted(cacheBytes: 8 << 20)
    for number in 0..<200 { _ = try engine.get(Self.key(number)) }
    var rows = 0
    try EngineScan(engine.reader, ScanQuery(), view: try engine.reader.view()).forEach(
      limit: 200, values: true
    ) {
      (_, value) throws(TidemarkError) in
      if rows == 0 {
        var batch = OperationBatch()
        for number in 0..<200 {
          try batch.add(.put, key: bytes(Self.key(number)).rawSpan, value: bytes("new").rawSpan)
        }
        _ = try engine.commit(batch)
        for number in 0..<200 {
          let key = bytes(Self.key(number))
          _ = try engine.reader.read(forKey: key.rawSpan) { _, _ in }
        }
      }
      #expect([UInt8](copying: value) == Self.value(rows))
      rows += 1
      return true
    }
    #expect(rows == 200)
    try engine.close()
  }

  @Test("a value that is replaced while a scan has the old one in its hands is not kept")
  func replaced() throws {
    let engine = try compacted(cacheBytes: 8 << 20)
    var rows = 0
    let view = try engine.reader.view()
    try EngineScan(engine.reader, ScanQuery(), view: view).forEach(limit: nil, values: true) {
      (_, _) throws(TidemarkError) in
      rows += 1
      // All on the page that is being walked, before the scan comes by.
      if rows == 1_100 {
        for number in 1_100..<1_200 {
          var batch = OperationBatch()
          try batch.add(
            .put, key: bytes(Self.key(number)).rawSpan, value: bytes("new").rawSpan)
          _ = try engine.commit(batch)
        }
      }
      return true
    }
    #expect(rows == Self.keys)
    for number in 1_100..<1_200 { #expect(try engine.get(Self.key(number)) == "new") }
    try engine.close()
  }

  @Test("a scan decodes a block once, however little the caches hold")
  func once() throws {
    let engine = try compacted(cacheBytes: 0)
    var rows = 0
    let first = try reads { rows = try scan(engine) }
    #expect(rows == Self.keys)
    let segments = engine.reader.reading.withLock { $0.segments }
    let blocks = try segments.reduce(0) { sum, segment in
      // A frame's last block is followed by a row that is none.
      let counts = try segment.withLocator(
        active: { ($0.blocks.count, 0) }, sealed: { ($0.footer.blockCount, $0.footer.frameCount) })
      return sum + counts.0 - counts.1
    }
    #expect(blocks > 20)
    #expect((blocks...(blocks + 10)).contains(first), "\(first) reads for \(blocks) blocks")
    try engine.close()
  }

  @Test("a scan under which the store was suspended gives no further row")
  func suspended() throws {
    let engine = try compacted(cacheBytes: 8 << 20)
    var rows = 0
    let view = try engine.reader.view()
    let scan = EngineScan(engine.reader, ScanQuery(), view: view)
    let error = #expect(throws: TidemarkError.self) {
      try scan.forEach(limit: nil, values: true) { (_, _) throws(TidemarkError) in
        rows += 1
        if rows == 5 { try engine.suspend() }
        return true
      }
    }
    #expect(error?.code == .suspended)
    #expect(rows == 5)
    try engine.resume()
    #expect(try self.scan(engine) == Self.keys)
    try engine.close()
  }

  @Test("a scan ends where its body says that it is enough")
  func enough() throws {
    let engine = try compacted(cacheBytes: 0)
    var rows = 0
    let view = try engine.reader.view()
    try EngineScan(engine.reader, ScanQuery(), view: view).forEach(limit: nil, values: true) {
      (_, _) throws(TidemarkError) in
      rows += 1
      return rows < 77
    }
    #expect(rows == 77)
    #expect(try scan(engine, limit: 1_100) == 1_100)
    #expect(try scan(engine, limit: 0) == 0)
    try engine.close()
  }
}
