import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// The promise of a durable write that has found nothing to do.
@Suite("Durable writes that change nothing")
struct DurableNothingTests {
  @Test("a delete that finds its key gone already makes that durable", arguments: [true, false])
  func delete(hasOperation: Bool) throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("key", "value", durability: .durable)
    #expect(try engine.delete("key"))
    var again = OperationBatch()
    if hasOperation { try again.add(.delete, key: bytes("key").rawSpan) }
    #expect(try engine.commit(again, durability: .durable).applied == 0)
    store.disk.powerCut()
    store.disk.restart(keeping: .loseAll)
    #expect(try store.open().get("key") == nil)
  }

  @Test("without a promise the power may take the delete back")
  func control() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("key", "value", durability: .durable)
    #expect(try engine.delete("key"))
    store.disk.powerCut()
    store.disk.restart(keeping: .loseAll)
    #expect(try store.open().get("key") == "value")
  }
}
