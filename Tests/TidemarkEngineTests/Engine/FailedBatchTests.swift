import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Batches that fail")
struct FailedBatchTests {
  /// A store whose key `B` was touched, and the frame of that touch is damaged.
  private func storeWithDamagedTouch() throws -> TestStore {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("B", "1")
    try engine.touch("B")
    try engine.checkpointer.writeRun()
    let segment = try #require(engine.reader.reading.withLock { $0.segments.first })
    let offset = Int(try segment.frames()[1].offset) + FormatConstants.frameHeaderBytes + 3
    try engine.close()
    store.disk.flipBit(offset * 8, inFile: "store/" + segment.fileName)
    return store
  }

  private func putAndTouch() throws -> OperationBatch {
    var batch = OperationBatch()
    try batch.add(.put, key: bytes("A").rawSpan, value: bytes("never").rawSpan)
    try batch.add(.touch, key: bytes("B").rawSpan)
    return batch
  }

  @Test("a batch that fails midway leaves nothing, and its sequences hold what comes next")
  func nothingStays() throws {
    let engine = try storeWithDamagedTouch().open(.write)
    let batch = try putAndTouch()
    let error = #expect(throws: TidemarkError.self) { try engine.commit(batch) }
    #expect(error?.code == .damaged)
    #expect(engine.reader.liveKeys == 1)
    #expect(try engine.get("A") == nil)
    #expect(try engine.put("C", "see") == 3)
    #expect(try engine.get("A") == nil)
    #expect(try engine.get("C") == "see")
    #expect(try engine.put("A", "now") == 4)
    #expect(try engine.reader.entry(at: 4).head.previous == 0)
    try engine.close()
  }

  @Test("when the index cannot be made anew after that, nothing is answered until reopening")
  func noIndex() throws {
    let store = try storeWithDamagedTouch()
    let engine = try store.open(.write)
    try engine.put("later", "1")
    try engine.touch("later")
    // Without its sorted run the index has to be made from the log, where the damage is.
    for name in store.disk.files() where name.hasSuffix(".idx") { store.disk.erase(name) }
    let batch = try putAndTouch()
    #expect(throws: TidemarkError.self) { try engine.commit(batch) }
    let reads: [() throws -> Void] = [
      { _ = try engine.reader.slot(ofKey: bytes("A").rawSpan) }, { _ = try engine.keys() },
      { _ = try engine.reader.countKeys() }, { _ = try engine.reader.labelCounts() },
    ]
    for read in reads {
      let error = #expect(throws: TidemarkError.self) { try read() }
      #expect(error?.code == .poisoned)
    }
    let error = #expect(throws: TidemarkError.self) { try engine.put("C", "see") }
    #expect(error?.code == .poisoned)
    try? engine.close()
  }

  @Test("an index made anew in the middle knows what the active segment holds")
  func activeSegment() throws {
    let store = TestStore()
    let first = try store.open()
    for start in stride(from: 0, to: 20_000, by: 1_000) {
      var batch = OperationBatch()
      for i in start..<(start + 1_000) {
        try batch.add(
          .put, key: bytes("old key number \(i)").rawSpan, value: bytes("value \(i)").rawSpan)
      }
      try first.commit(batch)
    }
    try first.checkpointer.writeRun()
    try first.close()
    let engine = try store.open(.write)
    for i in 0..<5 { try engine.put("new\(i)", "value \(i)") }
    let run = try #require(store.disk.files().first { $0.hasSuffix(".idx") })
    let length = try #require(store.disk.contents(of: run)).count
    store.disk.overwrite(
      run, at: 4096, with: [UInt8](repeating: 0x5a, count: length - 4096))
    for i in stride(from: 0, to: 20_000, by: 500) {
      #expect(try engine.get("old key number \(i)") == "value \(i)")
    }
    #expect(engine.reader.reading.withLock { $0.nextRun.generation } == 1)
    #expect(engine.reader.liveKeys == 20_005)
    #expect(try engine.get("new4") == "value 4")
    try engine.put("new0", "again")
    #expect(try engine.reader.history.versions(ofKey: bytes("new0").rawSpan).count == 2)
    try engine.close()
    #expect(try store.open(.write).reader.liveKeys == 20_005)
  }

  @Test("a sync is not believed after one that failed")
  func secondSync() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    let appender = try #require(engine.writer.writing.withLock { $0.appender })
    store.disk.plan = .error(.EIO, atCall: 1, of: [.sync])
    #expect(throws: FileSystemError.self) { try appender.sync() }
    #expect(throws: FileSystemError.self) { try appender.sync() }
    #expect(throws: LogReadError.self) { try appender.seal() }
    try? engine.close()
  }

  @Test("a full disk while a segment is sealed refuses the write and nothing else")
  func fullDiskWhileSealing() throws {
    var store = TestStore()
    store.configuration.segmentBytes = 40_000
    let engine = try store.open()
    var expected = 0
    var refusals = 0
    for i in 0..<400 {
      if i % 7 == 3 { store.disk.plan = .error(.ENOSPC, atCall: 1, of: [.allocate], sticky: true) }
      do {
        try engine.put("key\(i)", String(repeating: "v", count: 700))
        expected += 1
      } catch let error as TidemarkError {
        #expect(error.code == .noSpace)
        refusals += 1
      }
      store.disk.plan = .none
    }
    #expect(refusals > 5)
    #expect(engine.reader.reading.withLock { $0.segments.count } > 4)
    #expect(engine.reader.liveKeys == expected)
    store.disk.kill()
    store.disk.restart()
    let again = try store.open(.write)
    #expect(again.reader.liveKeys == expected)
    try again.close()
  }

  @Test("a directory sync that fails once does not stand in the way of the next write")
  func directorySync() throws {
    let store = TestStore()
    let engine = try store.open()
    store.disk.plan = .error(.EMFILE, atCall: 1, of: [.syncDirectory])
    #expect(throws: TidemarkError.self) { try engine.put("a", "1") }
    try engine.put("a", "2")
    #expect(try engine.get("a") == "2")
    try engine.close()
    #expect(try StoreVerifier.verify(store.path, environment: store.environment()).findings.isEmpty)
  }
}
