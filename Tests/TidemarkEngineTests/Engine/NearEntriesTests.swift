import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Entries that stand near each other")
struct NearEntriesTests {
  /// A store with values of all lengths, several versions of a key, deletes and touches.
  private func fill(_ engine: Engine, seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<60 {
      var batch = OperationBatch()
      for _ in 0..<generator.int(in: 1...60) {
        let key = bytes("key \(generator.int(below: 400))")
        switch generator.int(below: 10) {
        case 0: try batch.add(.delete, key: key.rawSpan)
        case 1: try batch.add(.touch, key: key.rawSpan)
        default:
          let length = [0, 3, 250, 250, 250, 5_000, 50_000][generator.int(below: 7)]
          var value = [UInt8](repeating: UInt8(generator.int(below: 256)), count: length)
          for index in value.indices.prefix(300) { value[index] &+= UInt8(index & 63) }
          try batch.add(.put, key: key.rawSpan, value: value.rawSpan)
        }
      }
      try engine.commit(batch)
      if generator.int(below: 15) == 0 { try engine.checkpointer.writeRun() }
    }
  }

  private func entries(_ engine: Engine, prefetches: Bool = false) throws -> [LogEntry] {
    var cursor = LogCursor(
      engine.reader, from: 1, through: engine.reader.lastSequence, prefetches: prefetches)
    var entries: [LogEntry] = []
    while let entry = try cursor.next() { entries.append(entry) }
    return entries
  }

  @Test(
    "a reader of near values reads what others read, in any order",
    arguments: [1, 2, 3] as [UInt64])
  func values(seed: UInt64) throws {
    let engine = try TestStore().open()
    try fill(engine, seed: seed)
    var generator = SeededGenerator(seed: seed)
    let puts = try entries(engine).filter { $0.head.kind == .put }
    var reader = RowReader(engine.reader)
    func compare(_ entry: LogEntry) throws {
      let expected = try engine.reader.withValue(of: entry.sequence) {
        (value, _) throws(TidemarkError) in [UInt8](copying: value)
      }
      let found = try reader.value(of: entry.sequence)
      #expect(found == expected, "seed \(seed), sequence \(entry.sequence)")
    }
    for entry in puts { try compare(entry) }
    for entry in puts.reversed() where generator.int(below: 2) == 0 { try compare(entry) }
    // The segment that it holds on to is replaced.
    try engine.compact(CompactionOptions(dropHistory: false))
    for entry in puts where try engine.reader.entryIfKept(at: entry.sequence) != nil {
      try compare(entry)
    }
    for entry in try entries(engine) where entry.head.kind == .put { try compare(entry) }
  }

  @Test(
    "whether an entry is its key's newest is what the index says of the key",
    arguments: [4, 5, 6] as [UInt64])
  func newest(seed: UInt64) throws {
    let engine = try TestStore().open()
    try fill(engine, seed: seed)
    for isMerged in [false, true] {
      if isMerged { try engine.checkpointer.writeRun() }
      var newest = 0
      for entry in try entries(engine, prefetches: true)
      where entry.head.kind == .put || entry.head.kind == .delete {
        let slot = try #require(try engine.reader.slot(ofKey: entry.key.rawSpan))
        let isNewest = slot.sequence == entry.sequence && !slot.size.isTouched
        let found = try engine.reader.isNewest(entry.sequence, ofKey: entry.key.rawSpan)
        #expect(found == isNewest, "seed \(seed), sequence \(entry.sequence)")
        newest += isNewest ? 1 : 0
      }
      #expect(newest > 50)
    }
  }

  @Test("a cursor begins and ends within a frame")
  func borders() throws {
    let engine = try TestStore().open()
    try fill(engine, seed: 7)
    let all = try entries(engine).map(\.sequence)
    for first in stride(from: UInt64(1), through: engine.reader.lastSequence, by: 13) {
      let last = min(first + 40, engine.reader.lastSequence)
      var cursor = LogCursor(engine.reader, from: first, through: last)
      var found: [UInt64] = []
      while let entry = try cursor.next() { found.append(entry.sequence) }
      #expect(found == all.filter { first...last ~= $0 })
    }
  }
}
