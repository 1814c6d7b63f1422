import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("The parts of a compaction")
struct CompactionPartsTests {
  @Test("values read in file order are those of single reads", arguments: 0..<4)
  func frameReader(seed: UInt64) throws {
    var chance = SeededGenerator(seed: seed)
    let engine = try TestStore(seed: seed).open()
    for _ in 0..<30 {
      var batch = OperationBatch()
      for _ in 0..<(1 + chance.next() % 60) {
        // Empty ones, those that share a block, and those that fill several.
        let length = [0, 20, 300, 5_000, 16 << 10, 50_000][Int(chance.next() % 6)]
        let value = (0..<length).map { UInt8(truncatingIfNeeded: UInt64($0 / 7) ^ seed) }
        let key = bytes("key/\(chance.next() % 500)")
        try batch.add(.put, key: key.rawSpan, value: value.rawSpan)
      }
      _ = try engine.commit(batch)
    }
    for round in 0..<2 {
      try engine.writer.sealSegments()
      for segment in engine.reader.reading.withLock({ $0.segments }) {
        var frames = try FrameReader(segment)
        for record in try segment.frames() {
          let front = try frames.front(record)
          for head in front.entries where head.hasValue && chance.next() % 3 > 0 {
            var value: [UInt8] = []
            try frames.appendValue(of: head, in: front, to: &value)
            let single = try engine.reader.withValue(of: head.sequence) { (value, _) in
              [UInt8](copying: value)
            }
            #expect(value == single, "seed \(seed), sequence \(head.sequence)")
          }
        }
      }
      if round == 0 { try engine.compact() }
    }
    try engine.close()
  }

  @Test("when a key was created outlives its older versions in segments rewritten before")
  func createdAcrossGroups() throws {
    let store = TestStore()
    let engine = try store.open()
    for (key, isGone) in [("a", false), ("b", true)] {
      try engine.put(key, "1")
      if isGone { try engine.delete(key) }
      try engine.writer.sealSegments()
      store.clock.advance(by: .seconds(1))
      try engine.put(key, "2")
      try engine.writer.sealSegments()
      store.clock.advance(by: .seconds(1))
      try engine.put(key, "3")
    }
    try engine.writer.sealSegments()
    var expected: [String: UInt64] = [:]
    for (key, sequence) in [("a", UInt64(1)), ("b", 6)] {
      expected[key] = try engine.reader.entry(at: sequence).head.commitTime
    }
    let limit = engine.reader.lastSequence
    let floor = CompactionFloor(sequence: limit, needed: limit)
    var fates = CompactionDecisions(engine.reader, floor, nil, isRecordSuperseded: nil)
    let segments = engine.reader.reading.withLock { $0.segments }.filter { $0.isSealed }
    #expect(segments.count == 5)
    for segment in segments {
      let group = CompactionPlan.Group(segments: [segment], rows: [])
      let unit = CompactionUnit(
        compactor: engine.compactor, group: group, floor: floor, options: CompactionOptions())
      if let swap = try unit.run(&fates).swap { try engine.compactor.replace(swap) }
    }
    for (key, time) in expected {
      let slot = try #require(try engine.reader.slot(ofKey: bytes(key).rawSpan))
      #expect(try engine.reader.entry(at: slot.sequence).head.created == time, "key \(key)")
    }
  }

  @Test("a delete that stays for others ends the time of a key before it")
  func createdBehindKeptDelete() throws {
    let store = TestStore()
    let engine = try store.open()
    for value in ["1", nil, "3"] {
      if let value { try engine.put("k", value) } else { try engine.delete("k") }
      store.clock.advance(by: .seconds(1))
    }
    engine.reader.keepDeletes(above: 1)
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(try engine.reader.entryIfKept(at: 1) == nil)
    #expect(try engine.reader.entryIfKept(at: 2)?.head.kind == .delete)
    #expect(try engine.reader.entry(at: 3).head.created == 0)
    try engine.close()
  }

  @Test("a frame beyond the end of its file is damage, where it is read in file order")
  func beyondEnd() throws {
    let engine = try TestStore().open()
    try engine.put("k", "v")
    try engine.writer.sealSegments()
    let segment = try #require(engine.reader.reading.withLock { $0.segments.first })
    var record = try #require(try segment.frames().first)
    record.offset = 1 << 30
    let frames = try FrameReader(segment)
    let error = #expect(throws: TidemarkError.self) { try frames.front(record) }
    #expect(error?.code == .damaged)
  }

  private struct SomeKeys: NumberedKeys {
    var keys: [[UInt8]]
    func keyLength(_ number: Int) -> Int { keys[number].count }
    func keyWord(_ number: Int, at depth: Int) -> UInt64 {
      let key = keys[number]
      return key.rawSpan.bigEndianWord(at: depth)
    }
  }

  @Test("numbers are sorted by their keys, those of equal keys by themselves", arguments: 0..<20)
  func sorter(seed: UInt64) {
    var chance = SeededGenerator(seed: seed)
    let prefix = [UInt8](repeating: 7, count: Int(chance.next() % 20))
    let keys = (0..<500).map { _ in
      prefix + (0..<(1 + chance.next() % 12)).map { _ in UInt8(chance.next() % 3) }
    }
    var numbers = Array(0..<UInt32(keys.count))
    KeySorter(SomeKeys(keys: keys)).sort(&numbers)
    let expected = (0..<UInt32(keys.count)).sorted { a, b in
      let (x, y) = (keys[Int(a)], keys[Int(b)])
      return x == y ? a < b : x.lexicographicallyPrecedes(y)
    }
    #expect(numbers == expected, "seed \(seed)")
  }

  @Test("a value worked out on another thread, or at once, is there when it is asked for")
  func deferred() throws {
    for usesThread in [false, true] {
      let right = Deferred(name: "test", usesThread: usesThread) { () throws(TidemarkError) in 42 }
      #expect(try right.value() == 42)
      #expect(try right.value() == 42)
      let wrong = Deferred<Int>(name: "test", usesThread: usesThread) { () throws(TidemarkError) in
        throw TidemarkError(.closed, "no")
      }
      #expect(throws: TidemarkError.self) { try wrong.value() }
    }
  }
}
