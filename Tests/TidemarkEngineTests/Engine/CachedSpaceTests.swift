import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Space of cached data in the log")
struct CachedSpaceTests {
  private func store() -> TestStore {
    var store = TestStore()
    store.configuration.segmentBytes = 32 << 10
    store.configuration.growthBytes = 4 << 10
    store.configuration.compactsByItself = false
    return store
  }

  /// The segments, and those of which space is counted.
  private func ids(_ engine: Engine) -> (segments: Set<UInt64>, counted: Set<UInt64>) {
    engine.reader.reading.withLock { (Set($0.segments.map(\.id)), Set($0.usage.rows.keys)) }
  }

  private func fill(_ engine: Engine, _ count: Int, seed: UInt64) throws {
    var chance = SeededGenerator(seed: seed)
    for number in 0..<count {
      try engine.cache("c\(number % 10)", (0..<30).map { _ in "\(chance.next())" }.joined())
    }
  }

  @Test(
    "an opening counts no space of segments that are gone", arguments: [true, false], [20, 60, 200])
  func gone(isClosed: Bool, count: Int) throws {
    let store = store()
    var engine = try store.open()
    for round in 0..<3 {
      try fill(engine, count, seed: UInt64(count + round))
      try engine.writer.sealSegments()
      try engine.writer.flush()
      try engine.checkpointer.writeRun(.whole)
      try engine.compact()
      if isClosed {
        try engine.close()
      } else {
        store.disk.kill()
        store.disk.restart()
      }
      engine = try store.open(.write)
      let (segments, counted) = ids(engine)
      #expect(counted.isSubset(of: segments), "round \(round)")
    }
    try engine.close()
  }

  @Test(
    "cached data that was replaced is told as dead, what the user replaced as history",
    arguments: [20, 100, 300])
  func dead(count: Int) throws {
    let engine = try store().open()
    try fill(engine, count, seed: UInt64(count))
    try engine.writer.sealSegments()
    try engine.writer.flush()
    var bytes = try engine.status().bytes
    #expect(bytes.dead > 0 && bytes.history == 0)
    for number in 0..<count { try engine.put("mine", "\(number)" + "\(bytes)") }
    try engine.writer.sealSegments()
    try engine.writer.flush()
    bytes = try engine.status().bytes
    #expect(bytes.dead > 0 && bytes.history > 0)
    #expect(bytes.live + bytes.history + bytes.dead + bytes.pinned == bytes.log)
    try engine.compact()
    bytes = try engine.status().bytes
    #expect(bytes.dead == 0 && bytes.history > 0)
    try engine.close()
  }

  @Test("no compaction seals a segment that has no entry yet", arguments: [100, 300, 600])
  func empty(count: Int) throws {
    let engine = try store().open()
    engine.autoCompactor.noteCacheBound(64 << 10)
    for round in 0..<4 {
      try fill(engine, count, seed: UInt64(count + round))
      try engine.writer.sealSegments()
      try engine.writer.flush()
      engine.autoCompactor.setAutomatic(true)
      try engine.autoCompactor.compactIfWorthwhile()
      engine.autoCompactor.setAutomatic(false)
      let segments = engine.reader.reading.withLock { $0.segments }
      #expect(segments.dropLast().allSatisfy { $0.isSealed }, "round \(round)")
      #expect(Set(segments.map(\.firstSequence)).count == segments.count)
    }
    for number in 0..<10 { #expect(try engine.get("c\(number)") != nil) }
    try engine.close()
  }

  @Test(
    "a compaction counts cached data that it kept because what replaced it was not synced",
    arguments: [3, 5, 10])
  func unsynced(count: Int) throws {
    let engine = try store().open()
    for round in 0..<2 { try fill(engine, 10, seed: UInt64(count + round)) }
    try engine.writer.sealSegments()
    try engine.writer.flush()
    try fill(engine, count, seed: UInt64(count + 2))
    engine.autoCompactor.setAutomatic(true)
    let first = try #require(engine.reader.snapshot.firstWithCached)
    let before = try engine.compact(engine.autoCompactor.automaticOptions(from: first))
    #expect(before.droppedEntries == 10)
    #expect(engine.reader.snapshot.firstWithCached != nil)
    try engine.writer.flush()
    let again = try #require(engine.reader.snapshot.firstWithCached)
    #expect(
      try engine.compact(engine.autoCompactor.automaticOptions(from: again)).droppedEntries == count
    )
    #expect(engine.reader.snapshot.firstWithCached == nil)
    try engine.close()
  }
}
