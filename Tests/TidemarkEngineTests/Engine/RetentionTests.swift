import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("The entries that a compaction keeps")
struct RetentionTests {
  private func store(versionsPerKey: UInt32) -> TestStore {
    var store = TestStore()
    store.configuration.retention = Retention(versionsPerKey: versionsPerKey)
    return store
  }

  private func versions(_ engine: Engine, _ key: String) throws -> [UInt64] {
    try engine.reader.history.versions(ofKey: bytes(key).rawSpan).map(\.sequence)
  }

  @Test("the newest versions of every key stay, as many as the retention says")
  func count() throws {
    let engine = try store(versionsPerKey: 2).open()
    for i in 1...5 { try engine.put("k", "\(i)") }
    try engine.put("other", "1")
    let report = try engine.compact()
    #expect(report.droppedEntries == 3)
    #expect(try versions(engine, "k") == [5, 4])
    #expect(try engine.get("other") == "1")
    try engine.close()
  }

  @Test("an open view keeps the versions that it shows, whatever the count of versions")
  func view() throws {
    let engine = try store(versionsPerKey: 1).open()
    for i in 1...5 { try engine.put("k", "\(i)") }
    let view = try engine.reader.view(at: 3)
    try engine.compact()
    #expect(try engine.get("k", in: view) == "3")
    #expect(try engine.keys(in: view) == ["k"])
    #expect(try versions(engine, "k") == [5, 4, 3])
    #expect(throws: TidemarkError.self) { try engine.reader.view(at: 2) }
    try engine.close()
  }

  @Test("a version that is not on the disk yet does not push out one that is")
  func unsynced() throws {
    let store = store(versionsPerKey: 1)
    let engine = try store.open()
    try engine.put("k", "older")
    try engine.put("k", "safe", durability: .durable)
    try engine.writer.sealSegments()
    let plan = engine.reader.reading.withLock {
      CompactionPlan($0.segments, rows: $0.manifest.segments)
    }
    let floor = CompactionFloor(
      sequence: 0, versionsPerKey: 1, needed: engine.reader.durableSequence)
    // The writes of others while the compaction runs.
    try engine.put("k", "not yet")
    var fates = CompactionDecisions(engine.reader, floor, nil, isRecordSuperseded: nil)
    let outcome = try CompactionUnit(
      compactor: engine.compactor, group: plan.groups[0], floor: floor,
      options: CompactionOptions()
    ).run(&fates)
    try engine.compactor.replace(try #require(outcome.swap))
    store.disk.powerCut()
    store.disk.restart(keeping: .loseAll)
    #expect(try store.open(.write).get("k") == "safe")
  }

  @Test("a view opened after the floor was chosen is refused or answered rightly")
  func lateView() throws {
    let engine = try TestStore().open()
    for i in 1...9 { try engine.put("k", "\(i)") }
    try engine.compact(CompactionOptions(dropHistory: true))
    let error = #expect(throws: TidemarkError.self) { try engine.reader.view(at: 5) }
    #expect(error?.code == .historyGone)
    try engine.close()
  }

  @Test("views taken from many threads while history is dropped never miss a key")
  func raceWithViews() async throws {
    var configuration = EngineConfiguration()
    configuration.cacheBytes = 0
    let engine = try Engine.open(
      "store", configuration: configuration,
      environment: EngineEnvironment(
        fileSystem: MemoryFileSystem(), clock: SystemClock(), random: SeededRandom(seed: 3)))
    for i in 0..<20 { try engine.put("k\(i)", "0") }
    let reader = Task.detached { () -> [Int] in
      var counts: [Int] = []
      while !Task.isCancelled {
        let last = engine.reader.lastSequence
        guard let view = try? engine.reader.view(at: last - 10) else { continue }
        counts.append(try engine.keys(in: view).count)
      }
      return counts
    }
    for round in 0..<40 {
      for i in 0..<20 { try engine.put("k\(i)", "\(round)") }
      try engine.compact(CompactionOptions(dropHistory: true))
    }
    reader.cancel()
    let counts = try await reader.value
    #expect(counts.allSatisfy { $0 == 20 })
    try engine.close()
  }

  @Test("a key with thousands of versions above the floor is compacted in one walk")
  func hotKey() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("cold", "1")
    let view = try engine.reader.view()
    for i in 0..<3_000 { try engine.put("hot", "\(i)") }
    try engine.writer.sealSegments()
    let before = store.disk.calls
    let report = try engine.compact(CompactionOptions(dropHistory: true))
    #expect(report.droppedEntries == 0)
    // A few calls a version; the square of them would be millions.
    #expect(store.disk.calls - before < 60_000)
    #expect(view.sequence == 1)
    try engine.close()
  }

  @Test("attributes that touches have renewed outlive the touches in between")
  func touches() throws {
    let engine = try TestStore().open()
    func add(_ kind: EntryKind, _ hash: UInt8?, _ maxAge: UInt32?) throws {
      var attributes = EntryAttributes()
      attributes.hash = hash.map { [$0] }
      attributes.maxAge = maxAge
      var batch = OperationBatch()
      let value = bytes("v")
      if kind == .put {
        try batch.add(
          kind, key: bytes("k").rawSpan, value: value.rawSpan, attributes: attributes)
      } else {
        try batch.add(kind, key: bytes("k").rawSpan, attributes: attributes)
      }
      try engine.commit(batch)
    }
    func expect(_ hash: UInt8, _ maxAge: UInt32) throws {
      let newest = try #require(try engine.reader.slot(ofKey: bytes("k").rawSpan)).sequence
      let attributes = try engine.reader.info(try engine.reader.entry(at: newest)).attributes
      #expect(attributes.hash == [hash])
      #expect(attributes.maxAge == maxAge)
    }
    try add(.put, 1, 10)
    try add(.touch, 2, 77)
    try add(.touch, nil, nil)
    try expect(2, 77)
    try add(.touch, nil, 5)
    try add(.touch, 3, nil)
    try expect(3, 5)
    try engine.compact(CompactionOptions(dropHistory: true))
    try expect(3, 5)
    try add(.touch, nil, nil)
    try expect(3, 5)
    #expect(try engine.get("k") == "v")
    try engine.close()
  }

  @Test("when a key was created outlives its older versions, also beneath touches")
  func created() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("k", "1")
    let first = try engine.reader.entry(at: 1).head.commitTime
    for _ in 0..<3 {
      store.clock.advance(by: .seconds(60))
      try engine.put("k", "2")
      store.clock.advance(by: .seconds(60))
      try engine.touch("k")
      try engine.touch("k")
      try engine.compact(CompactionOptions(dropHistory: true))
      let newest = try #require(try engine.reader.slot(ofKey: bytes("k").rawSpan)).sequence
      #expect(try engine.reader.info(try engine.reader.entry(at: newest)).created == first)
    }
    try engine.close()
  }

  @Test("a date before the kept history is refused, also when later times come in")
  func dates() throws {
    let store = TestStore()
    let engine = try store.open()
    func put(_ key: String, year: Int64) throws {
      var attributes = EntryAttributes()
      attributes.time = date(year)
      var batch = OperationBatch()
      try batch.add(
        .put, key: bytes(key).rawSpan, value: bytes("1").rawSpan, attributes: attributes)
      try engine.commit(batch)
    }
    func date(_ year: Int64) -> Timestamp { Timestamp(seconds: (year - 1970) * 31_556_952) }
    for (key, year) in [("a", 2030), ("a", 2020), ("b", 2021), ("c", 2022)] as [(String, Int64)] {
      try put(key, year: year)
    }
    func keys(_ engine: Engine, _ year: Int64) throws -> [String] {
      try engine.keys(in: engine.reader.history.view(ofOwnTimesThrough: date(year)))
    }
    #expect(try keys(engine, 2020) == ["a"] && keys(engine, 2031) == ["a", "b", "c"])
    try engine.compact(CompactionOptions(dropHistory: true))
    try put("d", year: 2023)
    for _ in 0..<2 {
      let error = #expect(throws: TidemarkError.self) { try keys(engine, 2025) }
      #expect(error?.code == .historyGone)
      #expect(try keys(engine, 2031) == ["a", "b", "c", "d"])
    }
    try put("e", year: 2040)
    #expect(try keys(engine, 2031) == ["a", "b", "c", "d"])
    #expect(try keys(engine, 2041) == ["a", "b", "c", "d", "e"])
    try engine.close()
    let again = try store.open()
    #expect(throws: TidemarkError.self) { try keys(again, 2025) }
    #expect(try keys(again, 2031) == ["a", "b", "c", "d"])
    try again.close()
  }
}
