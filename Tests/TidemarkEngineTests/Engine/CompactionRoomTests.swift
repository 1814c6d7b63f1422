import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Room for a compaction")
struct CompactionRoomTests {
  private var store = TestStore()

  init() {
    store.configuration.segmentBytes = 64 << 10
    store.configuration.growthBytes = 8 << 10
    store.configuration.dictionaryFromBytes = 16 << 10
    store.configuration.compactionWindowBytes = 100 << 10
    store.configuration.ballastFromLogBytes = .max
  }

  /// Values that hardly compress.
  private func value(_ chance: inout SeededGenerator) -> String {
    (0..<40).map { _ in String(chance.next(), radix: 36) }.joined()
  }

  private func fill(_ engine: Engine, _ count: Int = 800) throws {
    var chance = SeededGenerator(seed: 3)
    for i in 0..<count { try engine.put("key \(chance.int(below: 300)) \(i % 2)", value(&chance)) }
  }

  private func files() -> [String] {
    store.disk.files().filter { $0.hasSuffix(".seg") || $0.hasSuffix(".run") }
  }

  /// The files that MANIFEST lists, as paths of the disk.
  private func listed(_ engine: Engine) -> [String] {
    engine.reader.reading.withLock { read in
      read.manifest.segments.map { "store/log/" + $0.fileName }.sorted()
    }
  }

  @Test("a compaction without room is refused before it writes, and says what it takes")
  func refused() throws {
    let engine = try store.open()
    try fill(engine)
    try engine.writer.sealSegments()
    let log = try engine.status().bytes.log
    let before = store.disk.trace.count
    store.disk.capacity = store.disk.usedBytes + (24 << 10)
    let free = store.disk.freeBytes(store.path) ?? 0
    let error = #expect(throws: TidemarkError.self) { try engine.compact() }
    #expect(error?.code == .noSpace)
    #expect(error?.message.contains("\(free) are free") == true, "\(error?.message ?? "")")
    let written = store.disk.trace[before...].filter { $0.operation == .write }
    #expect(written.allSatisfy { $0.path.contains("MANIFEST") })
    #expect(files().sorted() == listed(engine))
    store.disk.capacity = store.disk.usedBytes + 2 * log
    #expect(try engine.compact().segmentsRewritten > 5)
    #expect(files().sorted() == listed(engine))
    try engine.close()
  }

  @Test("a compaction on request counts space that the system can purge as free")
  func purged() throws {
    var environment = store.environment()
    environment.freeBytesAfterPurge = { [disk = store.disk] path in
      disk.capacity = nil
      return .max
    }
    let engine = try Engine.open(
      store.path, configuration: store.configuration, environment: environment)
    try fill(engine)
    try engine.writer.sealSegments()
    store.disk.capacity = store.disk.usedBytes + (24 << 10)
    #expect(try engine.compact().segmentsRewritten > 5)
    #expect(store.disk.capacity == nil)
    try engine.close()
  }

  @Test("a purge of caches does not ask the system to purge anything")
  func unasked() throws {
    var environment = store.environment()
    environment.freeBytesAfterPurge = { _ in
      Issue.record("nobody has asked for this compaction")
      return .max
    }
    let engine = try Engine.open(
      store.path, configuration: store.configuration, environment: environment)
    for number in 0..<200 { try engine.cache("\(number)", String(repeating: "a", count: 2_000)) }
    for number in 0..<200 { try engine.evict("\(number)") }
    try engine.writer.sealSegments()
    try engine.writer.flush()
    try engine.checkpointer.writeWholeRun()
    store.disk.capacity = store.disk.usedBytes
    _ = try engine.autoCompactor.purgeCaches(seals: false)
    store.disk.capacity = nil
    try engine.close()
  }

  @Test("a disk that gets full in the middle of a compaction leaves nothing behind")
  func fullInTheMiddle() throws {
    let engine = try store.open()
    try fill(engine)
    try engine.writer.sealSegments()
    let log = try engine.status().bytes.log
    let keys = try engine.keys()
    var refusals = 0
    var free = log / 10
    while true {
      store.disk.capacity = store.disk.usedBytes + free
      do {
        try engine.compact()
        break
      } catch {
        #expect(error.code == .noSpace)
        refusals += 1
      }
      #expect(files().sorted() == listed(engine), "\(free)")
      free += 24 << 10
    }
    #expect(refusals > 5)
    store.disk.capacity = nil
    #expect(try engine.keys() == keys)
    try engine.close()
    let report = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(report.findings == [])
  }

  @Test(
    "on a full disk those segments are compacted that lose something, as far as there is room",
    arguments: [0, 3, 6])
  func segmentBySegment(position: Int) throws {
    let engine = try store.open()
    var chance = SeededGenerator(seed: 8)
    for segment in 0..<7 {
      for i in 0..<60 { try engine.put("\(segment)/\(i)", value(&chance)) }
      try engine.writer.sealSegments()
    }
    for i in 0..<30 { try engine.delete("\(position)/\(i)") }
    try engine.writer.sealSegments()
    let keys = try engine.keys()
    let log = try engine.status().bytes.log
    // Half of one segment fits, and by far not the whole log.
    store.disk.capacity = store.disk.usedBytes + log / 8
    let report = try engine.compact(CompactionOptions(dropHistory: true))
    #expect(report.droppedEntries == 30 && report.droppedTombstones == 30)
    #expect(report.bytesAfter < report.bytesBefore - log / 20)
    #expect(files().sorted() == listed(engine))
    store.disk.capacity = nil
    #expect(try engine.keys() == keys)
    try engine.close()
    let found = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(found.findings == [])
  }

  @Test("a deleted key stays deleted where the segment of its value did not fit")
  func passedOver() throws {
    var engine = try store.open()
    var chance = SeededGenerator(seed: 9)
    for segment in 0..<4 {
      for i in 0..<(segment == 0 ? 200 : 20) { try engine.put("\(segment)/\(i)", value(&chance)) }
      try engine.writer.sealSegments()
    }
    // Little goes of the first, long one, and nearly all of the others.
    for segment in 0..<4 { for i in 0..<18 { try engine.delete("\(segment)/\(i)") } }
    try engine.writer.sealSegments()
    let keys = try engine.keys()
    let log = try engine.status().bytes.log
    store.disk.capacity = store.disk.usedBytes + (28 << 10)
    let error = #expect(throws: TidemarkError.self) {
      try engine.compact(CompactionOptions(dropHistory: true))
    }
    #expect(error?.code == .noSpace)
    store.disk.capacity = nil
    #expect(try engine.status().bytes.log < log)
    try engine.close()
    for name in try store.disk.list(store.path + "/index") {
      try store.disk.remove(store.path + "/index/" + name)
    }
    engine = try store.open()
    #expect(try engine.keys() == keys)
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(try engine.keys() == keys)
    try engine.close()
    let found = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(found.findings == [])
  }

  @Test("a store does not compact by itself without room, says so, and does it once there is some")
  func byItself() throws {
    var store = store
    store.configuration.compactsByItself = true
    store.configuration.retention = Retention(versionsPerKey: 1)
    let engine = try store.open()
    engine.autoCompactor.setAutomatic(false)
    try fill(engine, 1200)
    try engine.writer.sealSegments()
    let log = try engine.status().bytes.log
    store.disk.capacity = store.disk.usedBytes + log / 2
    engine.autoCompactor.setAutomatic(true)
    let before = store.disk.trace.count
    try engine.doBackgroundWork()
    let compaction = try engine.status().compaction
    #expect(compaction.runs == 0)
    #expect((compaction.neededBytes ?? 0) >= log / 2)
    #expect(store.disk.trace[before...].allSatisfy { $0.operation != .write || !$0.isOfLog })
    store.disk.capacity = nil
    store.clock.advance(by: .seconds(4000))
    try engine.put("one", "more")
    try engine.doBackgroundWork()
    let after = try engine.status().compaction
    #expect(after.runs == 1 && after.neededBytes == nil)
    try engine.close()
  }
}

extension SimulatedCall {
  fileprivate var isOfLog: Bool { path.contains("/log/") }
}
