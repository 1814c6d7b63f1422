import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Compaction by itself")
struct AutoCompactionTests {
  private var store: TestStore

  init() {
    store = TestStore()
    store.configuration.segmentBytes = 32 << 10
    store.configuration.growthBytes = 8 << 10
    store.configuration.dictionaryFromBytes = 16 << 10
    store.configuration.compactsByItself = true
  }

  /// Values that hardly compress, so that bytes of the log are those of the entries.
  private func value(_ chance: inout SeededGenerator) -> String {
    (0..<12).map { _ in String(chance.next(), radix: 36) }.joined()
  }

  private func logBytes(_ engine: Engine) throws -> Int { try engine.status().bytes.log }

  @Test(
    "overwrites without history leave a log of twice what is live and a segment at most",
    arguments: [Retention(ageSeconds: 0), Retention(versionsPerKey: 1)])
  func steadyState(retention: Retention) throws {
    var store = store
    store.configuration.retention = retention
    var chance = SeededGenerator(seed: 1)
    let engine = try store.open()
    let keys = 400
    var longest = 0
    for i in 0..<6_000 {
      try engine.put("key \(i < keys ? i : chance.int(below: keys))", value(&chance))
      store.clock.advance(by: .seconds(2))
      if i > 3 * keys, i % 50 == 0 { longest = max(longest, try logBytes(engine)) }
    }
    let live = try engine.status().bytes.live
    #expect(longest < 2 * live + 2 * store.configuration.segmentBytes)
    let runs = engine.compactor.compacting.withLock { $0.runs }
    #expect(runs > 3)
    #expect(engine.reader.liveKeys == keys)
    try engine.close()
  }

  @Test("a store that keeps everything is written a few times, not again and again")
  func everythingKept() throws {
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    var chance = SeededGenerator(seed: 2)
    var rewritten = 0
    var last: UInt64 = 0
    for i in 0..<4_000 {
      try engine.put("key \(chance.int(below: 900))", value(&chance))
      if i % 10 > 0 { continue }
      let rows = engine.reader.reading.withLock { $0.manifest.segments }
      for row in rows where row.kind == .compacted && row.id > last {
        rewritten += row.rawBytes
        last = row.id
      }
    }
    let raw = engine.reader.reading.withLock { $0.manifest.segments.reduce(0) { $0 + $1.rawBytes } }
    #expect(rewritten > 0 && rewritten < 5 * raw)
    #expect(try engine.reader.bounds().historyFrom == 1)
    // When nothing comes, nothing is done, however much time passes.
    let before = engine.reader.reading.withLock { $0.segments.map(\.id) }
    for _ in 0..<50 {
      store.clock.advance(by: .seconds(3_600))
      try engine.doBackgroundWork()
    }
    #expect(engine.reader.reading.withLock { $0.segments.map(\.id) } == before)
    try engine.close()
  }

  @Test(
    "a store that compacts by itself holds all that was written, deletes and times of creation too",
    arguments: 0..<6)
  func contents(seed: UInt64) throws {
    var store = store
    store.configuration.segmentBytes = 12 << 10
    store.configuration.retention =
      seed % 3 == 0 ? Retention(versionsPerKey: 1) : Retention(ageSeconds: 100 * (seed % 3))
    store.configuration.compactionWindowBytes = seed % 2 == 0 ? 4_000 : 64 << 20
    var chance = SeededGenerator(seed: seed)
    var engine = try store.open(seed: seed)
    var state: [String: (value: String, created: UInt64)] = [:]
    for i in 0..<2_500 {
      let key = "key \(chance.int(below: 120))"
      store.clock.advance(by: .seconds(1))
      switch chance.int(below: 10) {
      case 0:
        try engine.delete(key)
        state[key] = nil
      case 1: try engine.touch(key)
      default:
        let value = value(&chance)
        let sequence = try engine.put(key, value)
        let time = try engine.reader.entry(at: sequence).head.commitTime
        state[key] = (value, state[key]?.created ?? time)
      }
      if i % 600 == 599 {
        try engine.close()
        engine = try store.open(.write, seed: seed + UInt64(i))
      }
      guard i % 250 == 249 else { continue }
      #expect(try engine.keys() == state.keys.sorted(), "seed \(seed)")
      for (key, known) in state {
        #expect(try engine.get(key) == known.value, "seed \(seed), \(key)")
        #expect(try created(key, engine) == known.created, "seed \(seed), \(key) at \(i)")
      }
    }
    #expect(engine.reader.reading.withLock { $0.segments.contains { $0.kind == .compacted } })
    // An index from the log alone knows the same: no deleted key comes back.
    try engine.close()
    for name in try store.disk.list("/store/index") {
      try store.disk.remove("/store/index/" + name)
    }
    engine = try store.open(.write, seed: seed + 9)
    #expect(try engine.keys() == state.keys.sorted(), "seed \(seed)")
    try engine.close()
  }

  /// When a key was created, as readers work it out.
  private func created(_ key: String, _ engine: Engine) throws -> UInt64 {
    var oldest: UInt64 = 0
    var walk = try VersionWalk(engine.reader, ofKey: bytes(key).rawSpan)
    while let entry = try walk.next(), !entry.head.kind.removes {
      if entry.head.created != 0 { return entry.head.created }
      if entry.head.kind != .touch { oldest = entry.head.commitTime }
    }
    return oldest
  }

  @Test("a compaction that is asked for breaks off one that runs by itself, and so does closing")
  func givingWay() throws {
    var store = store
    store.configuration.retention = Retention(versionsPerKey: 1)
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    var chance = SeededGenerator(seed: 4)
    engine.autoCompactor.setAutomatic(false)
    for i in 0..<900 { try engine.put("key \(i % 100)", value(&chance)) }
    let before = engine.reader.reading.withLock { $0.segments.map(\.id) }
    disk.once(.before, .write, of: ".seg") { engine.autoCompactor.stop() }
    engine.autoCompactor.setAutomatic(true)
    #expect(try engine.autoCompactor.compactIfWorthwhile() == false)
    #expect(engine.reader.reading.withLock { $0.segments.map(\.id) } == before)
    #expect(try store.disk.list("/store/log").count == before.count)
    #expect(try engine.compact(CompactionOptions(dropHistory: true)).segmentsRewritten > 0)
    try engine.close()
  }

  @Test("compactions go on by themselves after another process wrote to a suspended store")
  func resumed() throws {
    var store = store
    store.configuration.retention = Retention(versionsPerKey: 1)
    let engine = try store.open()
    try engine.put("a", "1")
    try engine.suspend()
    let other = try store.open(on: store.disk.anotherProcess(), .write)
    try other.put("b", "1")
    try other.close()
    try engine.resume()
    #expect(try engine.status().compaction.isAutomatic)
    var chance = SeededGenerator(seed: 5)
    for i in 0..<1_500 { try engine.put("key \(i % 100)", value(&chance)) }
    #expect(try engine.status().compaction.runs > 0)
    try engine.close()
  }

  @Test("views keep what they show, and nothing is rewritten that they keep")
  func views() throws {
    var store = store
    store.configuration.retention = Retention(versionsPerKey: 1)
    let engine = try store.open()
    var chance = SeededGenerator(seed: 6)
    for i in 0..<100 { try engine.put("key \(i)", "first \(i)") }
    let view = try engine.reader.view()
    for i in 0..<1_500 { try engine.put("key \(i % 100)", value(&chance)) }
    for i in 0..<100 { #expect(try engine.get("key \(i)", in: view) == "first \(i)") }
    try engine.close()
  }

  @Test("a merge for the order of keys makes way once a drop seems to pay")
  func mergeMakesWay() throws {
    var store = store
    store.configuration.retention = Retention(versionsPerKey: 1)
    store.configuration.segmentBytes = 256 << 10
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    engine.autoCompactor.setAutomatic(false)
    var chance = SeededGenerator(seed: 7)
    let keys = 1_500
    for i in 0..<keys {
      let part = value(&chance)
      try engine.put("key \(i)", part + value(&chance) + value(&chance) + value(&chance))
    }
    let sealed = engine.reader.reading.withLock { $0.segments.count }
    let before = try logBytes(engine)
    let failure = Lock<String?>(nil)
    disk.once(.before, .open, of: "/log/") {
      // So short that no segment is sealed for it.
      var batch = OperationBatch()
      do {
        for i in 0..<1_000 { try batch.add(.delete, key: bytes("key \(i)").rawSpan) }
        try engine.commit(batch)
      } catch { failure.withLock { $0 = "\(error)" } }
    }
    engine.autoCompactor.setAutomatic(true)
    // It has merged nothing, and it is due again at once.
    #expect(try !engine.autoCompactor.compactIfWorthwhile())
    #expect(failure.withLock { $0 } == nil)
    #expect(engine.compactor.compacting.withLock { $0.runs } == 0)
    #expect(engine.reader.reading.withLock { $0.segments.count } == sealed)
    #expect(engine.autoCompactor.isDue())
    #expect(try engine.autoCompactor.compactIfWorthwhile())
    #expect(try logBytes(engine) < before * 2 / 3)
    #expect(engine.reader.liveKeys == keys - 1_000)
    try engine.close()
  }

  @Test("a merge for the order of keys is slower while somebody writes, and a drop is not")
  func slowBesideWriters() throws {
    var store = store
    store.configuration.doesBackgroundWorkInline = false
    let engine = try store.open()
    try engine.put("key", "value")
    let merge = try #require(
      engine.autoCompactor.mergeOptions(from: 1).automatic?.pace?.lastSequence)
    #expect(merge() == engine.reader.lastSequence)
    let before = merge()
    try engine.put("key", "other")
    #expect(merge() > before)
    let drop = try #require(engine.autoCompactor.automaticOptions(from: 1).automatic?.pace)
    #expect(drop.lastSequence == nil)
    try engine.close()
  }

  @Test("the pace counts the time that was taken, and somebody who writes makes it slower")
  func pace() {
    let (clock, paused, written) = (ManualClock(), Lock<[UInt64]>([]), Lock<UInt64>(7))
    var pace = CompactionPace(bytesPerSecond: 1_000, clock: clock) { nanoseconds in
      paused.withLock { $0.append(nanoseconds) }
    }
    func waited(_ taken: Duration) -> UInt64 {
      paused.withLock { $0 = [] }
      clock.advance(by: taken)
      pace.wait(after: 10)
      return paused.withLock { $0.reduce(0, +) }
    }
    _ = waited(.seconds(100))
    #expect(waited(.milliseconds(4)) == 6_000_000)
    #expect(waited(.milliseconds(10)) == 0)
    pace.lastSequence = { written.withLock { $0 } }
    _ = waited(.seconds(100))
    #expect(waited(.milliseconds(4)) == 6_000_000)
    written.withLock { $0 += 1 }
    #expect(waited(.milliseconds(4)) == 76_000_000)
    #expect(waited(.milliseconds(4)) == 6_000_000)
  }

  private func row(
    _ raw: Int, _ isCompacted: Bool, superseded: Int = 0, cached: Int = 0
  ) -> CompactionChoice.Row {
    var segment = Manifest.Segment(
      id: 1, state: .sealed, kind: isCompacted ? .compacted : .appended, salt: 0, firstSequence: 1)
    segment.lastSequence = 2
    segment.rawBytes = raw
    segment.length = raw
    return CompactionChoice.Row(
      segment: segment,
      superseded: SpaceUsage.Row(superseded: superseded + cached, cached: cached))
  }

  private func choice(_ rows: [CompactionChoice.Row], keepsAll: Bool = false) -> CompactionChoice {
    CompactionChoice(
      rows: rows, mergeFromBytes: 64, dropFromBytes: 32, purgeFromBytes: 8, keepsAll: keepsAll)
  }

  @Test("segments are merged with neighbours that are not much longer")
  func merging() {
    #expect(choice([]).firstToMerge() == nil)
    #expect(choice([row(63, false)]).firstToMerge() == nil)
    #expect(choice([row(64, false)]).firstToMerge() == 0)
    #expect(choice([row(100, true)]).firstToMerge() == nil)
    #expect(choice([row(64, true), row(64, false)]).firstToMerge() == 0)
    #expect(choice([row(65, true), row(64, false)]).firstToMerge() == 1)
    #expect(choice([row(500, true), row(60, true), row(64, false)]).firstToMerge() == 1)
    #expect(choice([row(64, false)], keepsAll: true).firstToMerge() == nil)
    #expect(choice([row(128, false)], keepsAll: true).firstToMerge() == 0)
    #expect(choice([row(2_000, true), row(128, false)], keepsAll: true).firstToMerge() == nil)
    var left = row(64, false)
    left.isLeftAlone = true
    #expect(choice([left]).firstToMerge() == nil)
  }

  @Test("automatic compaction merges a compressed segment once reads wasted 20 times its length")
  func mergingForReads() {
    var packed = row(200, false)
    packed.segment.length = 50
    #expect(choice([packed]).firstToMerge() == nil)
    #expect(choice([packed, row(64, false)]).firstToMerge() == 1)
    #expect(choice([row(30, false), packed]).firstToMerge() == nil)
    packed.decodedBytes = 20 * 200 - 1
    #expect(choice([packed]).firstToMerge() == nil)
    packed.decodedBytes += 1
    #expect(choice([packed]).firstToMerge() == 0)
    #expect(choice([packed, row(64, false)]).firstToMerge() == 0)
    // Behind it there is a compacted one already, which is rewritten, too.
    #expect(choice([packed, row(64, true)]).firstToMerge() == nil)
    packed.decodedBytes = 20 * 264
    #expect(choice([packed, row(64, true)]).firstToMerge() == 0)
    #expect(choice([packed, row(64, true), row(200, true)]).firstToMerge() == nil)
  }

  @Test("automatic compaction merges short segments also if their blocks are compressed")
  func mergingShort() {
    var short = row(40, false)
    short.segment.length = 10
    #expect(choice([short]).firstToMerge() == nil)
    #expect(choice([short, short]).firstToMerge() == 0)
    var full = row(200, false)
    full.segment.length = 50
    #expect(choice([full, short, short]).firstToMerge() == 1)
    #expect(choice([full, short, short]).waitingBytes == 80)
  }

  @Test("a log of which half can go is rewritten")
  func dropping() {
    #expect(choice([row(100, true, superseded: 49)]).firstToDrop() == nil)
    #expect(choice([row(100, true, superseded: 50)]).firstToDrop() == 0)
    #expect(choice([row(100, true, superseded: 50)], keepsAll: true).firstToDrop() == nil)
    #expect(choice([row(40, true, superseded: 31)]).firstToDrop() == nil)
    let rows = [row(300, true), row(100, true, superseded: 90), row(50, false)]
    #expect(choice(rows).firstToDrop() == nil)
    #expect(choice(Array(rows.dropFirst())).firstToDrop() == 0)
  }

  @Test("cached data goes from the newest segments, as far back as half of them is such")
  func purging() {
    #expect(choice([row(10, false, cached: 7)], keepsAll: true).firstToDrop() == nil)
    #expect(choice([row(17, false, cached: 8)], keepsAll: true).firstToDrop() == nil)
    #expect(choice([row(16, false, cached: 8)], keepsAll: true).firstToDrop() == 0)
    let rows = [row(900, true), row(20, true, cached: 5), row(20, false, cached: 20)]
    #expect(choice(rows, keepsAll: true).firstToDrop() == 1)
    #expect(choice(rows).firstToDrop() == 1)
  }

  @Test("as many segments as may come are written a number of times that grows with its logarithm")
  func amplification() {
    var rows: [CompactionChoice.Row] = []
    var written = 0
    let count = 1_000
    for _ in 0..<count {
      rows.append(row(64, false))
      guard let first = choice(rows).firstToMerge() else { continue }
      let merged = rows[first...].reduce(0) { $0 + $1.segment.rawBytes }
      rows.replaceSubrange(first..., with: [row(merged, true)])
      written += merged
      #expect(rows.count <= 10)
    }
    #expect(written <= 8 * count * 64)
  }
}
