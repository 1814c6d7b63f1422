import TidemarkTestKit
import Testing

@testable import TidemarkEngine

@Suite("Entries that are read together")
struct EntriesTogetherTests {
  private let disk: HookedDisk
  private var store = TestStore()

  init() {
    disk = HookedDisk(store.disk)
    store.configuration.cacheBytes = 64 << 10
  }

  /// A store with puts, deletes and touches, with labels and attributes, some of it compacted.
  private func filled(_ seed: UInt64) throws -> (engine: Engine, sequences: [UInt64]) {
    var chance = SeededGenerator(seed: seed)
    let engine = try store.open(on: disk)
    for round in 0..<30 {
      var batch = OperationBatch()
      for number in 0..<40 {
        let key = bytes("key/\(100 + chance.int(below: 300))")
        let labels = (0..<chance.int(below: 3)).map { bytes("label \($0 + number % 5)") }
        var attributes = EntryAttributes()
        if chance.chance(0.3) { attributes.hash = bytes("hash \(number)") }
        switch chance.int(below: 8) {
        case 0: try batch.add(.delete, key: key.rawSpan)
        case 1: try batch.add(.touch, key: key.rawSpan, attributes: attributes)
        default:
          try batch.add(
            .put, key: key.rawSpan, value: bytes("value \(number)").rawSpan,
            labelSet: try batch.addLabelSet(labels), attributes: attributes)
        }
      }
      try engine.commit(batch)
      if round == 15 { try engine.compact(CompactionOptions(dropHistory: seed % 2 == 1)) }
    }
    var sequences: [UInt64] = []
    var cursor = LogCursor(engine.reader, from: 1, through: engine.reader.lastSequence)
    while let entry = try cursor.next() { sequences.append(entry.sequence) }
    return (engine, sequences)
  }

  /// How many times the log was read during a call.
  private func reads(_ body: () throws -> Void) throws -> Int {
    let most = 1_000_000
    disk.once(.before, .read, of: "/log/", skipping: most) {}
    try body()
    return most - (disk.skipping ?? 0)
  }

  @Test(
    "entries asked for together are those asked for one by one", arguments: 0..<4 as Range<UInt64>)
  func same(seed: UInt64) throws {
    let (engine, sequences) = try filled(seed)
    var random = SeededGenerator(seed: seed)
    let wanted = (sequences + sequences.prefix(50)).shuffled(using: &random)
    try #require(wanted.count > 600)
    var told: [Int: String] = [:]
    try engine.reader.entries.forEachInfo(at: wanted) { (index, key, info) in
      told[index] = "\([UInt8](copying: key)) \(info)"
    }
    #expect(told.count == wanted.count)
    for (index, sequence) in wanted.enumerated() {
      let entry = try engine.reader.entry(at: sequence)
      #expect(told[index] == "\(entry.key) \(try engine.reader.info(entry))", "seed \(seed)")
    }
    try engine.close()
  }

  @Test("the heads of a frame are read once for all of its entries, with the smallest caches")
  func once() throws {
    let (engine, all) = try filled(0)
    var random = SeededGenerator(seed: 1)
    let sequences = all.shuffled(using: &random)
    engine.reader.caches.removeAll()
    let together = try reads { try engine.reader.entries.forEach(at: sequences) { (_, _) in } }
    engine.reader.caches.removeAll()
    let alone = try reads {
      for sequence in sequences { _ = try engine.reader.entry(at: sequence) }
    }
    #expect(together < 60 && alone > 10 * together, "\(together) and \(alone) reads")
    try engine.close()
  }

  @Test(
    "a head that is decoded alone is the same as among all of its frame",
    arguments: 0..<2 as Range<UInt64>)
  func alone(seed: UInt64) throws {
    let (engine, sequences) = try filled(seed)
    for sequence in sequences {
      guard case .segment(let segment) = try engine.reader.place(of: sequence) else { continue }
      let (record, entry) = try #require(try segment.frame(holding: sequence))
      let caches = LogCaches(bytes: 1 << 20)
      let found = try #require(try segment.head(of: sequence, caches: caches))
      #expect(caches.fronts.bytes == 0 && found.front.entries.count == 1)
      let front = try segment.front(record, caches: LogCaches(bytes: 1 << 20))
      let same = LogEntry(segment: segment, front: front, head: front.entries[entry])
      #expect(found.key == same.key && found.labels == same.labels)
      #expect(try engine.reader.info(found).sequence == sequence)
      #expect(
        "\(try engine.reader.info(found))" == "\(try engine.reader.info(same))", "seed \(seed)")
    }
    try engine.close()
  }

  @Test("a frame of which two heads are asked for, one after the other, is kept as a whole")
  func keeps() throws {
    let (engine, sequences) = try filled(0)
    let caches = LogCaches(bytes: 64 << 20)
    let last = try #require(sequences.last)
    guard case .segment(let segment) = try engine.reader.place(of: last) else { return }
    for sequence in [last, last - 1] { _ = try segment.head(of: sequence, caches: caches) }
    #expect(caches.fronts.bytes > 0)
    #expect(try reads { _ = try segment.head(of: last - 2, caches: caches) } == 0)
    try engine.close()
  }

  @Test("a row that names an entry of another key is refused")
  func otherKey() throws {
    let (engine, _) = try filled(0)
    var row = try #require(
      try EngineScan(engine.reader, ScanQuery(), view: try engine.reader.view()).nextPage(upTo: 5)
        .first)
    row.key = bytes("another")
    #expect(throws: TidemarkError.self) {
      try engine.reader.entries.forEachInfo(of: [row]) { (_, _) in }
    }
    try engine.close()
  }
}
