import Testing
import Tidemark
import TidemarkEngine

@Suite("Batches")
struct BatchTests {
  let store: Store

  init() throws { store = try Machine().open() }

  @Test("a batch takes sequences in a row and shows as a whole")
  func whole() async throws {
    try await store.put("c", "0")
    let receipt = try await store.write { batch in
      try batch.put("a", "1")
      try batch.put("b", "2", labels: ["x"])
      try batch.delete("c")
      #expect(try store.state() == ["c": "0"])
    }
    #expect(receipt.sequences == 2..<5)
    #expect(try store.state() == ["a": "1", "b": "2"])
  }

  @Test("an entry comes after entries that are there already, so that there are no circles")
  func after() async throws {
    let first = try await store.put("attachment", "1").sequences.lowerBound
    try await store.put("note", "2", options: PutOptions(after: [first], priority: 3))
    let code = await code {
      try await store.put("circle", "3", options: PutOptions(after: [store.lastSequence + 1]))
    }
    #expect(code == .invalidArgument)
    #expect(try store.state() == ["attachment": "1", "note": "2"])
  }

  @Test("a closure that throws leaves nothing")
  func abort() async throws {
    struct Stop: Error {}
    await #expect(throws: Stop.self) {
      try await store.write { batch in
        try batch.put("a", "1")
        throw Stop()
      }
    }
    #expect(store.lastSequence == 0)
  }

  @Test("a condition that does not hold leaves nothing of the batch")
  func condition() async throws {
    try await store.put("b", "0")
    let code = await code {
      try await store.write { batch in
        try batch.put("a", "1")
        try batch.put("b", "1", if: .absent)
      }
    }
    #expect(code == .conflict)
    #expect(try store.state() == ["b": "0"])
    #expect(store.lastSequence == 1)
  }

  @Test("conditions are judged on the state before the batch")
  func judgedBefore() async throws {
    try await store.write { batch in
      try batch.put("a", "1", if: .absent)
      try batch.put("a", "2", if: .absent)
    }
    #expect(try store.text(forKey: "a") == "2")
  }

  @Test("a change that is refused leaves nothing in the batch")
  func refused() async throws {
    var batch = WriteBatch()
    try batch.put("a", "1", labels: ["x"], if: .absent)
    let before = batch.operations.mark
    let hash = [UInt8](repeating: 1, count: 65)
    let label = EntryLabel(String(repeating: "l", count: 256))
    let refusals: [(inout WriteBatch) throws -> Void] = [
      { try $0.put("b", "2", labels: ["y"], options: PutOptions(hash: hash), if: .hash([1])) },
      { try $0.put("", "2", labels: ["y"], if: .present) },
      { try $0.put("b", "2", labels: [label]) },
      { try $0.touch("b", hash: hash, if: .sequence(1)) },
      { try $0.delete(String(repeating: "k", count: 65_536), if: .present) },
    ]
    for refusal in refusals {
      #expect(code { try refusal(&batch) } == .invalidArgument)
      #expect(batch.operations.mark == before)
    }
    try await store.write(batch)
    #expect(try store.state() == ["a": "1"])
  }

  @Test("an engine's batch looks at everything before it takes anything")
  func refusedByEngine() throws {
    var batch = OperationBatch()
    var attributes = EntryAttributes()
    attributes.hash = [UInt8](repeating: 1, count: 65)
    let before = batch.mark
    #expect(throws: TidemarkError.self) {
      try batch.add(
        .put, key: [1].rawSpan, value: [2].rawSpan, attributes: attributes)
    }
    #expect(batch.mark == before)
  }

  @Test("an empty batch takes no sequence")
  func empty() async throws {
    try await store.put("a", "1")
    let receipt = try await store.write { _ in }
    #expect(receipt.sequences.isEmpty)
    #expect(receipt.sequence == 1)
    #expect(store.lastSequence == 1)
  }

  @Test("an add that fails leaves the batch as it was")
  func failedAdd() async throws {
    var batch = WriteBatch()
    try batch.put("a", "1")
    #expect(code { try batch.put("", "1", if: .hash([1])) } == .invalidArgument)
    #expect(batch.count == 1)
    try await store.write(batch)
    #expect(try store.state() == ["a": "1"])
  }

  @Test("a batch can be emptied and used again")
  func reuse() async throws {
    var batch = WriteBatch()
    try batch.put("a", "1", labels: ["x"], if: .absent)
    try await store.write(batch)
    batch.removeAll()
    #expect(batch.isEmpty)
    try batch.put("b", "2")
    try await store.write(batch)
    #expect(try store.state() == ["a": "1", "b": "2"])
    #expect(try store.found(EntryQuery(labels: .all("x"))) == ["a"])
  }

  @Test("a batch of many frames is read back whole")
  func large() async throws {
    var batch = WriteBatch()
    for i in 0..<5_000 { try batch.put("key/\(i)", [UInt8](repeating: UInt8(i & 255), count: 400)) }
    let receipt = try await store.write(batch)
    #expect(receipt.sequences.count == 5_000)
    #expect(try store.count() == 5_000)
    #expect(try store.value(forKey: "key/4999") == [UInt8](repeating: 135, count: 400))
  }
}
