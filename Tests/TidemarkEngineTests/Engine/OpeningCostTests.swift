import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("The cost of an opening")
struct OpeningCostTests {
  private func fill(_ store: TestStore, keys: Int) throws {
    let engine = try store.open()
    for start in stride(from: 0, to: keys, by: 1000) {
      var batch = OperationBatch()
      for i in start..<min(keys, start + 1000) {
        try batch.add(.put, key: bytes("item/\(i)").rawSpan, value: bytes("value \(i)").rawSpan)
      }
      try engine.commit(batch)
    }
    try engine.close()
  }

  @Test("an opening, a get and a close of a store that was closed cleanly change nothing")
  func nothingIsWritten() throws {
    let store = TestStore()
    try fill(store, keys: 3000)
    let files = store.disk.files().sorted()
    let before = store.disk.trace.count
    let engine = try store.open(.write)
    #expect(try engine.get("item/77") == "value 77")
    try engine.close()
    let changes = store.disk.trace[before...].filter { $0.isMutating && $0.operation != .lock }
    #expect(changes.isEmpty, "\(changes.map(\.description))")
    #expect(store.disk.files().sorted() == files)
  }

  @Test("an opening and a get read little, however many keys there are")
  func littleIsRead() throws {
    let store = TestStore()
    try fill(store, keys: 30_000)
    let log = store.disk.files().reduce(0) { $0 + (store.disk.contents(of: $1)?.count ?? 0) }
    let before = store.disk.trace.count
    let engine = try store.open(.write)
    #expect(try engine.get("item/7777") == "value 7777")
    let reads = store.disk.trace[before...].filter { $0.operation == .read }
    let total = reads.reduce(0) { $0 + $1.length }
    // Both copies of MANIFEST, and of everything else a page or a chunk.
    #expect(total < 160 << 10 && total * 8 < log && reads.count < 32, "\(total) of \(log)")
    try engine.close()
  }
}
