import Testing
import Tidemark

@Suite("Compare and put")
struct ConditionTests {
  let store: Store

  init() throws { store = try Machine().open() }

  @Test("absent holds for a key that was never there or was deleted")
  func absent() async throws {
    try await store.put("a", "1", if: .absent)
    #expect(await code { try await store.put("a", "2", if: .absent) } == .conflict)
    try await store.delete("a")
    try await store.put("a", "3", if: .absent)
    #expect(try store.text(forKey: "a") == "3")
  }

  @Test("present holds for a key that is there")
  func present() async throws {
    #expect(await code { try await store.put("a", "1", if: .present) } == .conflict)
    try await store.put("a", "1")
    try await store.put("a", "2", if: .present)
    #expect(try store.text(forKey: "a") == "2")
  }

  @Test("a sequence holds while nobody has written the key since")
  func sequence() async throws {
    let receipt = try await store.put("a", "1")
    try await store.put("b", "1")
    try await store.put("a", "2", if: .sequence(receipt.sequence))
    #expect(
      await code { try await store.put("a", "3", if: .sequence(receipt.sequence)) } == .conflict)
    #expect(try store.text(forKey: "a") == "2")
  }

  @Test("a touch changes the sequence that a condition must name")
  func touched() async throws {
    let receipt = try await store.put("a", "1")
    try await store.touch("a")
    #expect(
      await code { try await store.put("a", "2", if: .sequence(receipt.sequence)) } == .conflict)
  }

  @Test("a hash holds while the key carries it, whatever its sequence")
  func hash() async throws {
    try await store.put("a", "1", options: PutOptions(hash: [1, 2]))
    try await store.touch("a")
    try await store.put("a", "2", options: PutOptions(hash: [3]), if: .hash([1, 2]))
    #expect(await code { try await store.put("a", "3", if: .hash([1, 2])) } == .conflict)
    #expect(await code { try await store.put("b", "3", if: .hash([1, 2])) } == .conflict)
    try await store.put("c", "1")
    #expect(await code { try await store.put("c", "3", if: .hash([])) } == .conflict)
    #expect(try store.text(forKey: "a") == "2")
  }

  @Test("deletes and touches can be conditional too")
  func otherOperations() async throws {
    let receipt = try await store.put("a", "1", options: PutOptions(hash: [1]))
    #expect(await code { try await store.delete("a", if: .sequence(9)) } == .conflict)
    #expect(await code { try await store.touch("a", if: .hash([9])) } == .conflict)
    try await store.touch("a", if: .hash([1]))
    #expect(
      await code { try await store.delete("a", if: .sequence(receipt.sequence)) } == .conflict)
    #expect(try await store.delete("a", if: .hash([1])))
  }

  @Test("a condition on a hash is met however often others touch the key in between")
  func hashBesideTouches() async throws {
    let store = try await Store.open(at: .inMemory)
    try await store.put("a", "0", options: PutOptions(hash: [0]))
    let toucher = Task.detached { while !Task.isCancelled { try store.blocking.touch("a") } }
    while store.lastSequence < 2 { await Task.yield() }
    // Without a pause, so that other tests are not kept waiting.
    for i in 1...500 {
      let (old, new) = ([UInt8((i - 1) & 0xff)], [UInt8(i & 0xff)])
      try store.blocking.put("a", "\(i)", options: PutOptions(hash: new), if: .hash(old))
    }
    toucher.cancel()
    try await toucher.value
    #expect(try store.text(forKey: "a") == "500")
    #expect(try store.history(ofKey: "a").count > 501)
    try await store.close()
  }

  @Test("tasks that count up by compare and put lose no step")
  func race() async throws {
    let store = try await Store.open(at: .inMemory)
    try await store.put("counter", "0")
    let (tasks, steps) = (6, 50)
    try await withThrowingTaskGroup { group in
      for task in 0..<tasks {
        group.addTask { try await count(store, steps: steps, byHash: task.isMultiple(of: 2)) }
      }
      try await group.waitForAll()
    }
    #expect(try store.text(forKey: "counter") == "\(tasks * steps)")
    try await store.close()
  }

  /// Counts up, half of the tasks by sequence and half by validator hash.
  private func count(_ store: Store, steps: Int, byHash: Bool) async throws {
    var done = 0
    while done < steps {
      let entry = try #require(try store.entry(forKey: "counter"))
      let next = "\((Int(entry.value.text) ?? 0) + 1)"
      let condition =
        byHash
        ? entry.hash.map { WriteCondition.hash($0) } ?? .sequence(entry.sequence)
        : .sequence(entry.sequence)
      do {
        try await store.put(
          "counter", next, options: PutOptions(hash: Array(next.utf8)), if: condition)
        done += 1
      } catch {
        guard error.code == .conflict else { throw error }
        await Task.yield()
      }
    }
  }

  @Test("a conflict says which change of the batch had the condition that does not hold")
  func operation() async throws {
    try await store.put("b", "1")
    var batch = WriteBatch()
    try batch.put("a", "2")
    try batch.put("b", "2", if: .present)
    try batch.put("c", "2", if: .present)
    let error = await #expect(throws: TidemarkError.self) { try await store.write(batch) }
    #expect(error?.code == .conflict && error?.operation == 2)
    var hashed = WriteBatch()
    try hashed.put("a", "2")
    try hashed.put("b", "2", if: .hash([1]))
    let other = #expect(throws: TidemarkError.self) { try store.blocking.write(hashed) }
    #expect(other?.operation == 1)
    #expect(store.lastSequence == 1)
  }
}
