import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Entries that suspending could not save, or that another process replaced.
@Suite("Losing entries while an engine is suspended")
struct SuspendingLossTests {
  let store = TestStore()

  private func batch(_ key: String) throws -> OperationBatch {
    var batch = OperationBatch()
    try batch.add(.put, key: bytes(key).rawSpan, value: bytes("1").rawSpan)
    return batch
  }

  /// Suspends on a disk that takes back what it could not sync.
  private func suspendInVain(_ engine: Engine) {
    store.disk.plan = [FaultRule(.syncRevertsPages, .call(1))]
    let error = #expect(throws: TidemarkError.self) { try engine.suspend() }
    #expect(error?.code == .unknownOutcome)
    store.disk.plan = .none
  }

  @Test("a durable put that was lost is not acknowledged", arguments: [0, 1, 3])
  func acknowledged(later: Int) throws {
    let engine = try store.open()
    try engine.put("a", "1", durability: .durable)
    let result = try engine.stage(batch("lost"), durability: .durable)
    suspendInVain(engine)
    try engine.resume()
    #expect(engine.reader.lastSequence == 1)
    // Its sequence is somebody else's then.
    for i in 0..<later { try engine.put("later\(i)", "1", durability: .durable) }
    let error = #expect(throws: TidemarkError.self) {
      try engine.writer.sync(through: 2, of: result.epoch)
    }
    #expect(error?.code == .unknownOutcome)
    #expect(!engine.reader.isDurable(2, of: result.epoch))
    #expect(engine.reader.isDurable(1, of: result.epoch))
    #expect(try engine.get("lost") == nil)
    try engine.close()
  }

  @Test("a durable put that suspending has saved is acknowledged, whoever wrote meanwhile")
  func saved() throws {
    let engine = try store.open()
    let result = try engine.stage(batch("a"), durability: .durable)
    try engine.suspend()
    let other = try store.open(on: store.disk.anotherProcess(), .write)
    try other.put("b", "1")
    try other.close()
    try engine.resume()
    try engine.writer.sync(through: 1, of: result.epoch)
    #expect(engine.reader.isDurable(1, of: result.epoch))
    #expect(try engine.keys() == ["a", "b"])
    try engine.close()
  }

  @Test("views of what still stands outlive the loss of what came later")
  func views() throws {
    let engine = try store.open()
    try engine.put("a", "1", durability: .durable)
    let stands = try engine.reader.view()
    try engine.put("a", "2")
    let lost = try engine.reader.view()
    suspendInVain(engine)
    try engine.resume()
    for value in ["3", "4"] {
      #expect(try engine.get("a", in: stands) == "1")
      #expect(try engine.keys(in: stands) == ["a"])
      for call in [{ try engine.get("a", in: lost) }, { try engine.keys(in: lost).first }] {
        let error = #expect(throws: TidemarkError.self) { try call() }
        #expect(error?.code == .historyDiverged)
      }
      try engine.put("a", value)
    }
    #expect(try engine.get("a", in: engine.reader.view(at: 2)) == "3")
    try engine.close()
  }

  @Test("a reader whose writer has lost what it saw refuses views of that")
  func reader() throws {
    let writer = try store.open()
    try writer.put("a", "1", durability: .durable)
    try writer.put("a", "2")
    let reader = try store.open(.readOnly)
    let (stands, lost) = (try reader.reader.view(at: 1), try reader.reader.view())
    suspendInVain(writer)
    try writer.resume()
    try writer.put("a", "3")
    try reader.refresh()
    #expect(try reader.get("a", in: stands) == "1")
    let error = #expect(throws: TidemarkError.self) { try reader.get("a", in: lost) }
    #expect(error?.code == .historyDiverged)
    try reader.close()
    try writer.close()
  }

  @Test(
    "a value that is read while its sequence goes to another is not kept", arguments: [0, 1 << 20])
  func stale(cacheBytes: Int) throws {
    var store = store
    store.configuration.cacheBytes = cacheBytes
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    try engine.put("a", "1")
    try engine.suspend()
    let older = store.copy()
    try engine.resume()
    try engine.put("warm", "1")
    try engine.put("k", "old value")
    // From here on only the value itself is read.
    #expect(try engine.get("warm") == "1")
    disk.once(.after, .read, of: "/log/") { [store] in
      do {
        try engine.suspend()
        store.restore(older)
        try engine.resume()
        try engine.put("warm", "2")
        try engine.put("k", "new value")
      } catch { Issue.record(error) }
    }
    #expect(try engine.get("k") == "old value")
    #expect(!disk.isWaiting)
    #expect(engine.reader.lastSequence == 3)
    #expect(try engine.get("k") == "new value")
    try engine.close()
  }

  /// Has a store of fifty keys, and a record where it is given, compacted, and says its segments.
  private func compact(
    _ engine: Engine, record: RecordType? = nil
  ) throws -> Set<UInt64> {
    var batch = OperationBatch()
    for i in 0..<50 {
      try batch.add(.put, key: bytes("key \(i)").rawSpan, value: bytes("some value").rawSpan)
    }
    if let record { try RecordTable.add(record, key: [1], value: [2], to: &batch) }
    try engine.commit(batch)
    try engine.compact()
    return engine.reader.reading.withLock { Set($0.segments.map(\.id)) }
  }

  @Test("a record is found in a segment whose id the former log had given to another one")
  func reusedID() throws {
    try store.open().close()
    let copy = store.disk.snapshot()
    let engine = try store.open()
    let ids = try compact(engine)
    #expect(try engine.reader.reading.withLock { $0.segments }.allSatisfy { try $0.isRecordless() })
    try engine.suspend()
    // The user puts an older copy back, and another program goes on with that.
    store.disk.restore(copy)
    let other = try store.open(on: store.disk.anotherProcess(), .write)
    #expect(try !compact(other, record: RecordType(rawValue: 40)).isDisjoint(with: ids))
    try other.close()
    try engine.resume()
    #expect(try RecordTable(engine.reader).count == 1)
    try engine.close()
  }

  @Test("the index keeps a delete that an older copy of the log has, though it was compacted away")
  func deleteInCopy() throws {
    let first = try store.open()
    try first.put("a", "1")
    try first.delete("a")
    try first.close()
    let copy = store.disk.snapshot()
    let engine = try store.open()
    try engine.put("b", "1")
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(try engine.reader.slot(ofKey: bytes("a").rawSpan) == nil)
    try engine.suspend()
    store.disk.restore(copy)
    try engine.resume()
    try engine.put("c", "1")
    try engine.checkpointer.writeRun(.whole)
    #expect(try engine.reader.slot(ofKey: bytes("a").rawSpan)?.isDeleted == true)
    try engine.close()
  }
}
