import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Compaction as a merge")
struct CompactionMergeTests {
  private var store: TestStore

  init() {
    store = TestStore()
    store.configuration.segmentBytes = 40_000
    store.configuration.dictionaryFromBytes = 16 << 10
  }

  /// Random puts, touches and deletes of keys of all lengths.
  private func write(
    _ engine: Engine, _ chance: inout SeededGenerator, _ state: inout [String: String],
    count: Int
  ) throws {
    for _ in 0..<count {
      let number = chance.int(below: 300)
      let key = String(repeating: "k", count: 1 + number % 11) + "\(number)"
      switch chance.int(below: 8) {
      case 0:
        try engine.delete(key)
        state[key] = nil
      case 1: try engine.touch(key)
      default:
        let value = String(repeating: "v\(chance.next() % 50) ", count: chance.int(below: 60))
        try engine.put(key, value, labels: number % 3 == 0 ? ["l\(number % 5)", "m"] : [])
        state[key] = value
      }
    }
  }

  private func check(_ engine: Engine, _ state: [String: String], _ seed: UInt64) throws {
    let keys = state.keys.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
    #expect(try engine.keys() == keys, "seed \(seed)")
    for (key, value) in state { #expect(try engine.get(key) == value, "seed \(seed), \(key)") }
  }

  @Test(
    "windows and segments that are in order already become one segment in the order of keys",
    arguments: 0..<6)
  func oneSegment(seed: UInt64) throws {
    var store = store
    store.configuration.compactionWindowBytes = 9_000
    var chance = SeededGenerator(seed: seed)
    var state: [String: String] = [:]
    let engine = try store.open(seed: seed)
    for round in 0..<4 {
      try write(engine, &chance, &state, count: 400)
      if round == 1 { try engine.compactor.mergeSmallSegments() }
      let drops = seed % 2 == 0 || round == 3
      try engine.compact(CompactionOptions(dropHistory: drops))
      let sealed = engine.reader.reading.withLock { $0.segments.filter(\.isSealed) }
      #expect(sealed.map(\.kind) == [.compacted], "seed \(seed)")
      for isHistory in [true, false] {
        #expect(
          try entries(sealed[0], ofHistory: isHistory).allSatisfy { $0 }, "seed \(seed)")
      }
      try check(engine, state, seed)
      let files = try store.disk.list("/store/log")
      #expect(files.allSatisfy { $0.hasSuffix(".seg") }, "seed \(seed)")
    }
    try engine.close()
    let again = try store.open(.write, seed: seed)
    try check(again, state, seed)
    try again.close()
  }

  /// Puts a batch of keys, given by their numbers, with values of about 100 bytes.
  private func load(
    _ engine: Engine, _ numbers: [Int], _ round: Int, _ state: inout [String: String]
  ) throws {
    var batch = OperationBatch()
    for number in numbers {
      let key = "key \(100_000 + number)"
      let value = String(repeating: "\(round) \(number) ", count: 12)
      try batch.add(.put, key: bytes(key).rawSpan, value: bytes(value).rawSpan)
      state[key] = value
    }
    try engine.commit(batch)
  }

  @Test("a load in the order of keys is merged from where it stands, without windows in files")
  func loadInOrder() throws {
    var store = store
    store.configuration.compactionWindowBytes = 9_000
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    var state: [String: String] = [:]
    for round in 0..<30 { try load(engine, (0..<40).map { round * 40 + $0 }, round, &state) }
    disk.once(.before, .open, of: ".run") {}
    try engine.compact(CompactionOptions())
    #expect(disk.isWaiting)
    try check(engine, state, 0)
    // The same keys backwards: each batch is in order, and none but the first behind the last one.
    for round in 0..<30 { try load(engine, (0..<40).map { 1_160 - round * 40 + $0 }, 99, &state) }
    try engine.compact(CompactionOptions())
    #expect(!disk.isWaiting)
    try check(engine, state, 0)
    try engine.close()
  }

  @Test(
    "batches in any order, some of them in the order of keys, are merged into one",
    arguments: 0..<8)
  func partlyInOrder(seed: UInt64) throws {
    var store = store
    store.configuration.compactionWindowBytes = seed % 2 == 0 ? 9_000 : 1 << 20
    var chance = SeededGenerator(seed: seed)
    var state: [String: String] = [:]
    let engine = try store.open(seed: seed)
    for round in 0..<40 {
      let count = 2 + chance.int(below: 40)
      // From the key on with which the batch before ended, elsewhere, or in no order.
      let first = chance.int(below: 3) == 0 ? chance.int(below: 900) : round * 20
      var numbers = (0..<count).map { first + $0 / (1 + chance.int(below: 2)) }.sorted()
      if chance.int(below: 4) == 0 { numbers.shuffle(using: &chance) }
      try load(engine, numbers, round, &state)
    }
    try engine.compact(CompactionOptions(dropHistory: seed % 4 < 2))
    let segment = try #require(
      engine.reader.reading.withLock { $0.segments.first { $0.kind == .compacted } })
    for isHistory in [true, false] {
      #expect(try entries(segment, ofHistory: isHistory).allSatisfy { $0 }, "seed \(seed)")
    }
    try check(engine, state, seed)
    try engine.close()
  }

  /// Whether each entry comes behind the one before it.
  private func entries(_ segment: Segment, ofHistory isHistory: Bool) throws -> [Bool] {
    var last: (key: [UInt8], sequence: UInt64) = ([], 0)
    let frames = try FrameReader(segment)
    return try segment.frames(ofHistory: isHistory).flatMap { record in
      let front = try frames.front(record)
      return front.entries.map { head in
        let key = [UInt8](copying: front.key(of: head))
        defer { last = (key, head.sequence) }
        return last.key.lexicographicallyPrecedes(key)
          || last.key == key && last.sequence < head.sequence
      }
    }
  }

  @Test("windows that a compaction has written go when it fails, and the log stays as it was")
  func failure() throws {
    var store = store
    store.configuration.compactionWindowBytes = 9_000
    var chance = SeededGenerator(seed: 5)
    var state: [String: String] = [:]
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    try write(engine, &chance, &state, count: 600)
    for stage in [".run", ".seg"] {
      try write(engine, &chance, &state, count: 200)
      let before = try store.disk.list("/store/log")
      let isStopped = Lock(false)
      disk.once(.before, .write, of: stage, skipping: 1) { isStopped.withLock { $0 = true } }
      let error = #expect(throws: TidemarkError.self) {
        try engine.compact(
          CompactionOptions(dropHistory: true, shouldStop: { isStopped.withLock { $0 } }))
      }
      #expect(error?.code == .closed)
      let after = try store.disk.list("/store/log")
      #expect(after.allSatisfy { $0.hasSuffix(".seg") })
      #expect(Set(before).isSubset(of: after))
      try check(engine, state, 5)
    }
    try engine.close()
  }

  @Test("windows that a crash leaves behind are cleared away by the next opening")
  func leftovers() throws {
    let engine = try store.open()
    try engine.put("k", "v")
    let file = try store.disk.open(
      "/store/log/" + StoreLayout.runName(id: 9, number: 3), .create)
    try file.writeFully(bytes("whatever stands in it").rawSpan, at: 0)
    file.close()
    store.disk.kill()
    store.disk.restart()
    let again = try store.open(.write)
    #expect(try store.disk.list("/store/log").allSatisfy { $0.hasSuffix(".seg") })
    #expect(try again.get("k") == "v")
    try again.close()
  }

  @Test("a run with a flipped bit is refused, not merged", arguments: [0, 7, 40, 300])
  func damagedRun(offset: Int) throws {
    var window = SortWindow(roomFor: 0)
    var chance = SeededGenerator(seed: 1)
    for i in 0..<200 {
      let key = bytes("key \(chance.next() % 1000)")
      var head = EntryHead(
        sequence: UInt64(i + 1), keyLength: key.count, hasValue: true, commitTime: 1)
      let value = bytes("value \(chance.next())")
      head.valueLength = value.count
      let none: [UInt8] = []
      window.add(MergeEntry(head: head, labelSet: 0), key: key.rawSpan, attributes: none.rawSpan)
      window.bytes += value
    }
    let disk = SimulatedFileSystem(seed: 1)
    try disk.createDirectory("/d")
    let run = try MergeRun(
      creating: "/d/run", window, fileSystem: disk, contexts: ZstdContexts(), sealer: nil)
    func read() throws -> Int {
      var merge = try KeyMerge([LooseInput(try run.reader())])
      var count = 0
      while merge.first != nil {
        count += 1
        try merge.advance()
      }
      return count
    }
    #expect(try read() == 200)
    let file = try disk.open("/d/run", .readWrite)
    var byte = try file.read(1, at: offset)
    byte[0] ^= 1
    try file.writeFully(byte.rawSpan, at: offset)
    #expect(throws: TidemarkError.self) { try read() }
  }

  @Test("the log of a long compacted segment is read in order of sequence", arguments: 0..<4)
  func order(seed: UInt64) throws {
    var chance = SeededGenerator(seed: seed)
    var state: [String: String] = [:]
    let engine = try store.open(seed: seed)
    try write(engine, &chance, &state, count: 1_500)
    var expected: [UInt64: [UInt8]] = [:]
    var cursor = LogCursor(engine.reader, from: 1, through: engine.reader.lastSequence)
    while let entry = try cursor.next() { expected[entry.sequence] = entry.key }
    try engine.compact()
    for i in 0..<40 {
      let first = 1 + chance.next() % engine.reader.lastSequence
      // A few entries are found singly, many by a walk over all.
      let last = min(engine.reader.lastSequence, first + chance.next() % (i % 2 == 0 ? 900 : 3))
      var cursor = LogCursor(engine.reader, from: first, through: last)
      var met: [UInt64] = []
      while let entry = try cursor.next() {
        met.append(entry.sequence)
        #expect(entry.key == expected[entry.sequence], "seed \(seed)")
      }
      #expect(met == expected.keys.filter { (first...last).contains($0) }.sorted(), "seed \(seed)")
    }
    try engine.close()
  }

  @Test("a window over a segment cuts off what it has no room for", arguments: [1, 10, 5_000])
  func window(most: Int) throws {
    let engine = try store.open()
    var chance = SeededGenerator(seed: 3)
    var state: [String: String] = [:]
    try write(engine, &chance, &state, count: 800)
    try engine.compact()
    let segment = try #require(engine.reader.reading.withLock { $0.segments.first })
    var met: [UInt64] = []
    var first: UInt64 = 1
    while first <= segment.lastSequence {
      var window = try SequenceWindow(
        segment, first...segment.lastSequence, includesRecords: false, most: most)
      try window.gather()
      for entry in window.entries() {
        met.append(entry.sequence)
        let single = try engine.reader.entry(at: entry.sequence)
        #expect(entry.key == single.key && entry.labels == single.labels)
      }
      first = window.last + 1
      if met.count > 40, most == 1 { break }
    }
    #expect(met == met.sorted() && met.count >= 40)
    #expect(Set(met).count == met.count)
  }
}
