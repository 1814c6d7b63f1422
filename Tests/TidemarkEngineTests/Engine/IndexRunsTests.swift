import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Runs of the index")
struct IndexRunsTests {
  var store = TestStore()

  init() { store.configuration.smallRunKeys = 4 }

  /// Sessions that write fewer and fewer keys, so that each leaves a run of its own: 600 keys, 60
  /// of them without their label, 6 deleted.
  private func threeRuns() throws {
    var engine = try store.open()
    for i in 0..<600 { try engine.put("key\(1000 + i)", "old", labels: ["inbox"]) }
    try engine.close()
    engine = try store.open(.write)
    for i in 0..<60 { try engine.put("key\(1000 + 10 * i)", "new", labels: ["done"]) }
    try engine.close()
    engine = try store.open(.write)
    for i in 0..<6 { try engine.delete("key\(1000 + 100 * i)") }
    try engine.close()
  }

  private func check(_ engine: Engine) throws {
    #expect(engine.reader.liveKeys == 594)
    #expect(try engine.get("key1001") == "old")
    #expect(try engine.get("key1010") == "new")
    #expect(try engine.get("key1100") == nil)
    for (label, count) in [("inbox", 540), ("done", 54)] {
      var query = ScanQuery()
      query.labels = LabelQuery(all: [bytes(label)])
      #expect(try engine.keys(query).count == count)
      query.descending = true
      #expect(try engine.keys(query).count == count)
    }
    let counts = try engine.reader.labelCounts().map {
      (String(decoding: $0.label, as: UTF8.self), $0.count)
    }
    #expect(counts.map(\.0) == ["done", "inbox"] && counts.map(\.1) == [54, 540])
    #expect(try engine.keys().count == 594)
  }

  private func runs(_ engine: Engine) -> [Int] {
    engine.reader.reading.withLock { $0.index.runs.runs.map(\.count) }
  }

  private func files() -> [String] { store.disk.files().filter { $0.hasSuffix(".idx") }.sorted() }

  @Test("an opening after a clean close replays nothing, however little was written")
  func nothingToReplay() throws {
    try threeRuns()
    let engine = try store.open(.write)
    #expect(runs(engine) == [6, 60, 600])
    #expect(engine.reader.reading.withLock { $0.index.memtableKeys } == 0)
    try check(engine)
    try engine.put("one", "more")
    try engine.close()
    let again = try store.open(.readOnly)
    #expect(again.reader.reading.withLock { $0.index.memtableKeys } == 0)
    #expect(try again.get("one") == "more")
  }

  @Test("a manual compaction merges all runs of the index into one")
  func mergedByCompaction() throws {
    try threeRuns()
    let engine = try store.open(.write)
    try engine.compact()
    #expect(runs(engine) == [600])
    #expect(files().count == 1)
    try check(engine)
    try engine.put("one", "more")
    try engine.checkpointer.writeRun(.brief)
    #expect(runs(engine).count == 2)
    try engine.close()
    let again = try store.open(.readOnly)
    #expect(try again.get("one") == "more")
  }

  @Test("a close writes about what was written since the last one")
  func costOfClosing() throws {
    try threeRuns()
    let lengths = try files().map { try #require(store.disk.contents(of: $0)).count }
    #expect(lengths.count == 3)
    // The page of the header is in each.
    #expect((lengths[1] - 4096) * 4 < lengths[0] - 4096)
    #expect(lengths[2] < lengths[1])
    let report = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(report.findings == [] && report.runs == 3)
  }

  @Test("a run over others tells of lost labels also when no history is kept any more")
  func lostLabels() throws {
    var engine = try store.open()
    for i in 0..<600 { try engine.put("key\(1000 + i)", "old", labels: ["inbox"]) }
    try engine.close()
    engine = try store.open(.write)
    for i in 0..<60 { try engine.put("key\(1000 + 10 * i)", "new", labels: ["done"]) }
    // MANIFEST says that history goes, and then the run that would merge all cannot be written.
    store.disk.plan = [FaultRule(.error(.EIO), .call(1), calls: .only([.open]), path: ".idx")]
    #expect(throws: TidemarkError.self) { try engine.compact(CompactionOptions(dropHistory: true)) }
    store.disk.plan = .none
    #expect(try engine.reader.bounds().historyFrom == 660)
    try engine.close()
    engine = try store.open(.write)
    #expect(runs(engine) == [60, 600])
    for (label, count) in [("inbox", 540), ("done", 60)] {
      var query = ScanQuery()
      query.labels = LabelQuery(all: [bytes(label)])
      #expect(try engine.keys(query).count == count)
    }
    try engine.close()
  }

  @Test(
    "a run that is damaged or missing is made up for by those beneath and the log", arguments: 0..<3
  )
  func damaged(number: Int) throws {
    try threeRuns()
    let name = files()[number]
    store.disk.overwrite(name, at: 100, with: [1, 2, 3])
    let engine = try store.open(.write)
    #expect(runs(engine).count == number)
    try check(engine)
    try engine.put("key1001", "old", labels: ["inbox"])
    try engine.close()
    let again = try store.open(.write)
    #expect(again.reader.reading.withLock { $0.index.memtableKeys } == 0)
    try check(again)
    try again.close()
    try store.disk.remove("/" + files()[0])
    try check(try store.open(.write))
  }

  @Test("a run that turns out damaged when it is merged is replaced by what the log says")
  func damagedWhenMerged() throws {
    try threeRuns()
    let engine = try store.open(.write)
    store.disk.overwrite(files()[0], at: 4200, with: [1, 2, 3])
    for i in 0..<300 {
      try engine.put("key\(1000 + i)", "new", labels: i % 10 == 0 ? ["done"] : ["inbox"])
    }
    for i in 0..<3 { try engine.delete("key\(1000 + 100 * i)") }
    try engine.checkpointer.writeRun()
    #expect(runs(engine).count == 1)
    #expect(engine.reader.liveKeys == 594)
    try engine.close()
    let report = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(report.findings == [])
  }

  @Test("runs are few after many sessions, and a session does not write all that came before")
  func manySessions() throws {
    var most = 0
    for session in 0..<40 {
      let engine = try store.open()
      for i in 0..<20 { try engine.put("key\(session * 20 + i)", "1") }
      try engine.close()
      most = max(most, files().count)
    }
    #expect(most <= 6)
    let engine = try store.open(.write)
    #expect(engine.reader.liveKeys == 800)
    try engine.close()
  }

  @Test("former labels and deletes are known as long as history is, however runs were merged")
  func views() throws {
    try threeRuns()
    let engine = try store.open(.write)
    var query = ScanQuery()
    query.labels = LabelQuery(all: [bytes("inbox")])
    let view = try engine.reader.view(at: 600)
    #expect(try engine.keys(query, in: view).count == 600)
    for i in 0..<400 { try engine.put("other\(i)", "1") }
    try engine.checkpointer.writeRun()
    #expect(runs(engine).count == 1)
    #expect(try engine.keys(query, in: view).count == 600)
    try engine.close()
  }

  @Test("a compaction that drops deletes leaves one run, without them")
  func forgotten() throws {
    try threeRuns()
    let engine = try store.open(.write)
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(runs(engine) == [594])
    try check(engine)
    try engine.close()
    try check(try store.open(.write))
  }

  @Test("a backup has all runs")
  func backup() throws {
    try threeRuns()
    let engine = try store.open(.write)
    try engine.backup(to: "/copy")
    try engine.close()
    let copy = try Engine.open(
      "/copy", configuration: store.configuration, environment: store.environment())
    #expect(runs(copy) == [6, 60, 600])
    try check(copy)
  }
}
