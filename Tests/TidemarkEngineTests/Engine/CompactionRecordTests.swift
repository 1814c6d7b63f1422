import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("The engine's own records in a compaction")
struct CompactionRecordTests {
  private var store: TestStore

  init() {
    store = TestStore()
    store.configuration.segmentBytes = 40_000
  }

  /// Random bytes, which take on the disk what they are long.
  private func put(
    _ engine: Engine, _ name: String, type: UInt32, bytes: Int, _ chance: inout SeededGenerator
  ) throws {
    var batch = OperationBatch()
    let value = (0..<bytes).map { _ in UInt8(truncatingIfNeeded: chance.next()) }
    try RecordTable.add(
      RecordType(rawValue: type), key: Array(name.utf8), value: value, to: &batch)
    _ = try engine.commit(batch)
  }

  @Test(
    "a compaction keeps the newest alone of large records of one name",
    arguments: [10_000, 700_000])
  func newestAlone(bytes: Int) throws {
    let engine = try store.open()
    var chance = SeededGenerator(seed: 7)
    for number in 0..<20 {
      for i in 0..<50 { try engine.put("key \(number * 50 + i)", "value") }
      try put(engine, "peer", type: 32, bytes: bytes, &chance)
      try put(engine, "peer", type: 33, bytes: 100, &chance)
    }
    try engine.compact(CompactionOptions(dropHistory: true))
    let sealed = engine.reader.reading.withLock { $0.segments.filter(\.isSealed) }
    #expect(sealed.reduce(0) { $0 + $1.usedLength() } < 2 * bytes + 50_000)
    try engine.close()
  }

  @Test("versions of a key that a record has for its name keep their order, and all are read")
  func sameName() throws {
    let engine = try store.open()
    var chance = SeededGenerator(seed: 8)
    for number in 0..<60 {
      try put(engine, "peer", type: 32 + UInt32(number % 3), bytes: 30_000, &chance)
      try engine.put("peer", String(repeating: "\(number) ", count: 40_000))
    }
    try engine.compact()
    let sealed = engine.reader.reading.withLock { $0.segments.filter(\.isSealed) }
    try #require(sealed.count == 1)
    for isHistory in [true, false] {
      let frames = try FrameReader(sealed[0])
      let sequences = try sealed[0].frames(ofHistory: isHistory).flatMap {
        try frames.front($0).entries.map(\.sequence)
      }
      #expect(sequences == sequences.sorted())
    }
    for number in 0..<60 {
      let entry = try #require(try engine.reader.entryIfKept(at: UInt64(2 * number + 2)))
      #expect(entry.head.kind == .put)
    }
    let table = try RecordTable(engine.reader)
    #expect(table.count == 3)
    try engine.close()
  }

  /// How many bytes of the log finding the store's records reads.
  private func bytesRead(findingRecordsOf engine: Engine) throws -> Int {
    let before = store.disk.trace.count
    _ = try RecordTable(engine.reader)
    return store.disk.trace[before...].filter { $0.operation == .read }.reduce(0) {
      $0 + $1.length
    }
  }

  @Test("segments without records are not read for them, appended or compacted")
  func recordless() throws {
    var engine = try store.open()
    for i in 0..<20_000 { try engine.put("key \(i)", "value \(i &* 2_654_435_761)") }
    try engine.close()
    for _ in 0..<2 {
      engine = try store.open(.write)
      let log = engine.reader.reading.withLock { $0.segments }.reduce(0) { $0 + $1.usedLength() }
      #expect(log > 80_000)
      // A footer and a chunk of the locator of each.
      #expect(try bytesRead(findingRecordsOf: engine) * 3 < log)
      try engine.compact()
      try engine.close()
    }
  }

  @Test("a segment with one record among many entries says so, appended, recovered or compacted")
  func oneRecord() throws {
    var engine = try store.open()
    var chance = SeededGenerator(seed: 9)
    for i in 0..<200 { try engine.put("key \(i)", "value") }
    try put(engine, "peer", type: 32, bytes: 10, &chance)
    for i in 200..<400 { try engine.put("key \(i)", "value") }
    let killed = store.disk.snapshot()
    try engine.close()
    engine = try store.open(.write)
    #expect(try RecordTable(engine.reader).count == 1)
    try engine.compact()
    #expect(try engine.reader.reading.withLock { $0.segments }.contains { try !$0.isRecordless() })
    #expect(try RecordTable(engine.reader).count == 1)
    try engine.close()
    store.disk.restore(killed)
    engine = try store.open(.write)
    #expect(try RecordTable(engine.reader).count == 1)
    try engine.close()
    engine = try store.open(.write)
    #expect(try RecordTable(engine.reader).count == 1)
    try engine.close()
  }
}
