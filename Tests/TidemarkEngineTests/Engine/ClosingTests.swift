import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Closing an engine")
struct ClosingTests {
  @Test("closing says that what was answered may be lost when a sync had failed")
  func poisoned() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    store.disk.plan = .error(.EIO, atCall: 1, of: [.sync])
    #expect(throws: TidemarkError.self) { try engine.writer.sync(through: 1) }
    // The system's words, and the file.
    let words = ErrorNumber.text(ErrorNumber.inputOutput) + ", in sync of /store/log/"
    let next = #expect(throws: TidemarkError.self) { try engine.put("b", "1") }
    #expect(next?.code == .poisoned)
    #expect(next?.message.contains(words) == true)
    let error = #expect(throws: TidemarkError.self) { try engine.close() }
    #expect(error?.code == .unknownOutcome)
    #expect(error?.message.contains(words) == true)
    #expect(engine.reader.isClosed)
    #expect(try store.open(.write).get("a") == "1")
  }

  @Test("a sorted run that cannot be written does not keep a store from being closed cleanly")
  func runFails() throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<2_000 { try engine.put("key\(i)", "1") }
    store.disk.plan = [
      FaultRule(.error(.EIO), .call(1), calls: .only([.write]), path: ".idx", times: .max)
    ]
    let error = #expect(throws: TidemarkError.self) { try engine.close() }
    #expect(error?.code == .inputOutput)
    store.disk.plan = .none
    let loaded = try #require(try ManifestStore(store.disk, storePath: store.path).load())
    #expect(loaded.manifest.isClosedCleanly)
    #expect(loaded.areEqual)
    #expect(try store.open(.write).reader.liveKeys == 2_000)
  }

  @Test(
    "a sorted run that MANIFEST may list stays when the update that lists it stops midway",
    arguments: [FileSystemError.Operation.write, .sync], [1, 2])
  func runHalfListed(call: FileSystemError.Operation, copy: Int) throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<2_000 { try engine.put("key\(i)", "1") }
    try engine.writer.flush()
    store.disk.plan = [
      FaultRule(.error(.EIO), .call(copy), calls: .only([call]), path: "MANIFEST", times: .max)
    ]
    let error = #expect(throws: TidemarkError.self) { try engine.close() }
    #expect(error?.code == .unknownOutcome)
    store.disk.plan = .none
    let report = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(report.findings == [])
    #expect(try store.open(.write).reader.liveKeys == 2_000)
  }

  @Test("a disk too full for a sorted run closes a store cleanly and says nothing of it")
  func runOnFullDisk() throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<2_000 { try engine.put("key\(i)", "1") }
    store.disk.plan = [
      FaultRule(.error(.ENOSPC), .call(1), calls: .only([.write]), path: ".idx", times: .max)
    ]
    try engine.close()
    store.disk.plan = .none
    #expect(try #require(try ManifestStore(store.disk, storePath: store.path).load()).areEqual)
    let again = try store.open(.write)
    #expect(again.reader.reading.withLock { $0.manifest.runs.isEmpty })
    #expect(again.reader.liveKeys == 2_000)
  }

  @Test("nobody waits for a sync once sealing has synced everything")
  func noRoomNeeded() throws {
    var store = TestStore()
    store.configuration.doesBackgroundWorkInline = false
    let engine = try store.open()
    var batch = OperationBatch()
    let value = [UInt8](repeating: 7, count: 1 << 20)
    for i in 0..<20 { try batch.add(.put, key: bytes("k\(i)").rawSpan, value: value.rawSpan) }
    // For `durable` the log takes values as they are; the sync is left out.
    _ = try engine.stage(batch, durability: .durable, waitsForRoom: false)
    #expect(engine.writer.goalForRoom()?.sequence == 20)
    try engine.writer.sealSegments()
    #expect(engine.reader.durableSequence == engine.reader.lastSequence)
    #expect(engine.writer.goalForRoom() == nil)
    #expect(engine.writer.writing.withLock { $0.unsyncedBytes } == 0)
    try engine.close()
    #expect(engine.writer.goalForRoom() == nil)
  }

  @Test("closing leaves small segments alone while a compaction rewrites the log")
  func mergeBesideCompaction() throws {
    let store = TestStore()
    for i in 0..<(Limits.smallSegments - 1) {
      let engine = try store.open()
      try engine.put("key\(i)", "1")
      try engine.close()
    }
    let engine = try store.open()
    try engine.put("last", "1")
    try engine.writer.sealSegments()
    let before = engine.reader.reading.withLock { $0.segments.count }
    #expect(engine.compactor.compacting.withLock { $0.begin() })
    // It ends once it is refused what it wants to write.
    let compaction = try WorkerThread(name: "compacts") {
      while !engine.reader.isClosed {
        _ = Monitor(()).wait(timeoutNanoseconds: 100_000) { _ in false }
      }
      engine.compactor.compacting.withLock { $0.end() }
      engine.compactor.compacting.broadcast()
    }
    try engine.close()
    compaction.join()
    let again = try store.open()
    #expect(again.reader.reading.withLock { $0.segments.count } >= before - 1)
    try again.put("one more", "1")
    try again.close()
    #expect(try store.open().reader.reading.withLock { $0.segments.count } <= 2)
  }

  @Test("a rewrite whose inputs were replaced meanwhile changes nothing")
  func staleSwap() throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<3 {
      try engine.put("key\(i)", "1")
      try engine.writer.sealSegments()
    }
    let plan = engine.reader.reading.withLock {
      CompactionPlan($0.segments, rows: $0.manifest.segments)
    }
    let floor = CompactionFloor(sequence: 0)
    var fates = CompactionDecisions(engine.reader, floor, nil, isRecordSuperseded: nil)
    let outcome = try CompactionUnit(
      compactor: engine.compactor, group: plan.groups[0], floor: floor,
      options: CompactionOptions()
    ).run(&fates)
    try engine.compact()
    let rows = engine.reader.reading.withLock { $0.manifest.segments }
    let swap = try #require(outcome.swap)
    #expect(throws: TidemarkError.self) { try engine.compactor.replace(swap) }
    #expect(engine.reader.reading.withLock { $0.manifest.segments } == rows)
    try engine.close()
    #expect(try store.open().reader.liveKeys == 3)
  }

  @Test("a MANIFEST whose segments overlap is not written")
  func overlap() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    try engine.close()
    let manifests = ManifestStore(store.disk, storePath: store.path)
    var manifest = try #require(try manifests.load()).manifest
    let whole = manifest
    manifest.segments.append(manifest.segments[0])
    #expect(throws: TidemarkError.self) { try manifests.update(&manifest) }
    #expect(try #require(try manifests.load()).manifest == whole)
  }

  @Test("nothing is answered from the cache after closing")
  func cache() throws {
    let engine = try TestStore().open()
    try engine.put("a", "1")
    #expect(try engine.get("a") == "1")
    #expect(try engine.get("a") == "1")
    try engine.close()
    #expect(throws: TidemarkError.self) { try engine.get("a") }
  }
}
