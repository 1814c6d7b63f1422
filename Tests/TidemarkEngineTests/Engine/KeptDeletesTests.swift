import Synchronization
import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Deletes that somebody has yet to hear of, and compactions that are stopped")
struct KeptDeletesTests {
  /// The deletes that the log has.
  private func deletes(_ engine: Engine) throws -> [UInt64] {
    var cursor = LogCursor(engine.reader, from: 1, through: engine.reader.lastSequence)
    var found: [UInt64] = []
    while let entry = try cursor.next() {
      if entry.head.kind == .delete { found.append(entry.sequence) }
    }
    return found
  }

  /// Five versions of one key, and another one that is deleted, put again and deleted.
  private func fill(_ engine: Engine) throws {
    for i in 1...5 { try engine.put("hot", "\(i)") }
    try engine.put("gone", "1")
    try engine.delete("gone")
    try engine.put("gone", "2")
    try engine.put("back", "1")
    try engine.delete("back")
    try engine.put("back", "2")
    try engine.delete("gone")
  }

  @Test("they stay when the history goes, also those that were put again; nothing else does")
  func kept() throws {
    let store = TestStore()
    var engine = try store.open()
    try fill(engine)
    engine.reader.keepDeletes(above: 7)
    for _ in 0..<2 {
      try engine.compact(CompactionOptions(dropHistory: true))
      #expect(try deletes(engine) == [10, 12])
      #expect(try engine.reader.bounds().droppedThrough == 7)
      #expect(
        try engine.reader.history.versions(ofKey: bytes("hot").rawSpan).map(\.sequence) == [5])
      #expect(try engine.get("back") == "2" && engine.get("gone") == nil)
      try engine.close()
      let report = try StoreVerifier.verify(store.path, environment: store.environment())
      #expect(report.findings == [])
      engine = try store.open(.write)
      engine.reader.keepDeletes(above: 7)
    }
    engine.reader.keepDeletes(above: 10)
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(try deletes(engine) == [12])
    engine.reader.keepDeletes(above: nil)
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(try deletes(engine) == [] && engine.reader.bounds().droppedThrough == 12)
    try engine.close()
    #expect(try store.open(.write).reader.liveKeys == 2)
  }

  @Test("by age, too, they stay when the versions around them go")
  func byAge() throws {
    var store = TestStore()
    store.configuration.retention = Retention(ageSeconds: 60)
    let engine = try store.open()
    try fill(engine)
    store.clock.advance(by: .seconds(120))
    engine.reader.keepDeletes(above: 0)
    try engine.compact()
    #expect(try deletes(engine) == [7, 10, 12] && engine.reader.bounds().droppedThrough == 0)
    // The index has forgotten them: what is put there anew is found all the same.
    try engine.put("gone", "3")
    try engine.compact()
    #expect(try deletes(engine) == [7, 10, 12] && engine.get("gone") == "3")
    try engine.close()
  }

  @Test("a compaction that is stopped changes nothing that counts, and can be made again")
  func stopped() throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<200 { try engine.put("k\(i % 20)", "\(i)") }
    for left in 0..<6 {
      let asked = Atomic(0)
      let options = CompactionOptions(dropHistory: true) {
        asked.add(1, ordering: .relaxed).oldValue >= left
      }
      let error = #expect(throws: TidemarkError.self, "\(left)") { try engine.compact(options) }
      #expect(error?.code == .closed && !engine.reader.isClosed)
      guard asked.load(ordering: .relaxed) > left else { break }
      #expect(try engine.get("k3") == "183")
    }
    let report = try engine.compact(CompactionOptions(dropHistory: true))
    #expect(report.droppedEntries == 180 && engine.reader.liveKeys == 20)
    try engine.close()
    let found = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(found.findings == [])
  }

  @Test("the bytes a compaction would free are known beforehand, and are few afterwards")
  func space() throws {
    var store = TestStore()
    store.configuration.retention = Retention(ageSeconds: 60)
    let engine = try store.open()
    let random = SeededRandom(seed: 1)
    func write(_ count: Int) throws {
      for _ in 0..<count {
        try engine.put("hot", String((0..<100).map { _ in "\(random.next() % 10)" }.joined()))
      }
    }
    for i in 0..<100 { try engine.put("k\(i)", "\(random.next())") }
    try write(2_000)
    #expect(
      try engine.compactor.space(from: 1).reclaimable == 0, "all of it is younger than a minute")
    store.clock.advance(by: .seconds(120))
    let before = try engine.compactor.space(from: 1)
    #expect(before.reclaimable > before.log / 2 && before.appended == before.log)
    #expect(try engine.compactor.space(from: before.log).reclaimable == 0)
    do {
      let view = try engine.reader.view(at: 200)
      let pinned = try engine.compactor.space(from: 1)
      #expect(pinned.reclaimable < before.log / 4)
      let forecast = try engine.compact(CompactionOptions(dryRun: true))
      #expect(forecast.droppedEntries < 200)
      withExtendedLifetime(view) {}
    }
    try engine.compact()
    let after = try engine.compactor.space(from: 1)
    #expect(after.log < before.log - before.reclaimable / 2)
    #expect(after.reclaimable < 1_000 && after.appended < 10_000, "\(after)")
    try engine.close()
  }
}
