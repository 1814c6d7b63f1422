import Testing
import Tidemark

@Suite("Errors of the store")
struct ErrorTypeTests {
  private struct OwnError: Error {}

  /// Compiles only while all of these throw `TidemarkError` and nothing else.
  private func everything(_ store: Store) async throws(TidemarkError) -> Int {
    try await store.put("a", "1")
    try await store.put("b", [UInt8]([2]).span.bytes)
    try await store.delete("b")
    try await store.touch("a")
    var batch = WriteBatch()
    try batch.put("c", "3", if: .absent)
    let receipt = try await store.write(batch)
    try await store.undo(receipt.sequences)
    try await store.undo(since: receipt.sequence)
    try await store.clear(prefix: "x")
    var bytes = try store.withValue(forKey: "a") { value in value.byteCount } ?? 0
    try store.scan { _, value in bytes += value.byteCount }
    try await store.close()
    return bytes
  }

  @Test("writes and reads throw TidemarkError and nothing else")
  func typed() async throws {
    #expect(try await everything(try Machine().open()) == 3)
  }

  @Test("an error of a closure comes out of the call as it is, and nothing is written")
  func closures() async throws {
    let store = try Machine().open()
    try await store.put("a", "1")
    await #expect(throws: OwnError.self) {
      try await store.write { batch in
        try batch.put("b", "2")
        throw OwnError()
      }
    }
    #expect(throws: OwnError.self) {
      try store.withValue(forKey: "a") { _ in throw OwnError() }
    }
    #expect(throws: OwnError.self) { try store.scan { _, _ in throw OwnError() } }
    #expect(store.lastSequence == 1)
  }

  @Test("a cancelled write says so with a code and the next one goes through")
  func cancelled() async throws {
    let store = try Machine().open()
    for durability in [Durability.buffered, .durable] {
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        try await store.put("a", "1", durability: durability)
      }
      let error = await #expect(throws: TidemarkError.self) { try await task.value }
      #expect(error?.code == .cancelled)
    }
    try await store.put("b", "1")
    #expect(try !store.contains("a"))
  }
}
