import Testing
import Tidemark

@Suite("Undo and clear")
struct UndoTests {
  let store: Store

  init() throws { store = try Machine().open() }

  @Test("undo brings an earlier state back as new entries in one batch")
  func undo() async throws {
    let time = Timestamp(seconds: 77)
    try await store.put(
      "changed", "1", labels: ["x"],
      options: PutOptions(time: time, hash: [1], maxAge: .seconds(5), storageClass: .cache))
    try await store.put("deleted", "1")
    try await store.put("same", "1")
    let before = try store.state()
    try await store.put("changed", "2")
    try await store.delete("deleted")
    try await store.put("added", "1")
    try await store.put("came and went", "1")
    try await store.delete("came and went")
    let receipt = try await store.undo(since: 3)
    #expect(receipt.sequences == 9..<12)
    #expect(try store.state() == before)
    let entry = try #require(try store.entry(forKey: "changed"))
    #expect(entry.labels == ["x"])
    #expect(entry.time == time)
    #expect(entry.hash == [1])
    #expect(entry.maxAge == .seconds(5))
    // The user's own value stands between, which a cached one must not hide.
    #expect(entry.storageClass == .owned)
    #expect(try store.view(at: 8).state()["changed"] == "2")
  }

  @Test("an undo can be undone")
  func redo() async throws {
    try await store.put("a", "1")
    try await store.put("a", "2")
    try await store.delete("a")
    try await store.undo(since: 1)
    #expect(try store.state() == ["a": "1"])
    try store.blocking.undo(since: 3)
    #expect(try store.state() == [:])
  }

  @Test("one batch is taken back, and what came after it stays")
  func batch() async throws {
    try await store.put("a", "1", labels: ["x"])
    try await store.put("gone", "1")
    let receipt = try await store.write { batch in
      try batch.put("a", "2")
      try batch.put("new", "1")
      try batch.delete("gone")
    }
    try await store.put("later", "1")
    let undone = try await store.undo(receipt.sequences)
    #expect(undone.sequences == 7..<10)
    #expect(try store.state() == ["a": "1", "gone": "1", "later": "1"])
    #expect(try store.entry(forKey: "a")?.labels == ["x"])
    try store.blocking.undo(undone.sequences)
    #expect(try store.state() == ["a": "2", "new": "1", "later": "1"])
    #expect(try await store.undo(5..<5).sequences.isEmpty)
  }

  @Test("a batch whose keys were written since is not taken back, not even in part")
  func batchConflict() async throws {
    let receipt = try await store.write { batch in
      try batch.put("a", "1")
      try batch.put("b", "1")
    }
    try await store.put("b", "2")
    #expect(await code { try await store.undo(receipt.sequences) } == .conflict)
    #expect(try store.state() == ["a": "1", "b": "2"])
    #expect(await code { try await store.undo(0..<2) } == .invalidArgument)
    #expect(await code { try await store.undo(3..<9) } == .invalidArgument)
    #expect(store.lastSequence == 3)
  }

  @Test("undo of nothing writes nothing")
  func nothing() async throws {
    try await store.put("a", "1")
    #expect(try await store.undo(since: 1).sequences.isEmpty)
    #expect(store.lastSequence == 1)
  }

  @Test("undo of a touch brings the old hash back")
  func touch() async throws {
    try await store.put("a", "1", options: PutOptions(hash: [1]))
    try await store.touch("a", hash: [2])
    try await store.undo(since: 1)
    #expect(try store.entry(forKey: "a")?.hash == [1])
  }

  @Test("undo to a state that is no longer kept is refused")
  func gone() async throws {
    try await store.put("a", "1")
    try await store.put("a", "2")
    try await store.compact(dropHistory: true)
    #expect(await code { try await store.undo(since: 1) } == .historyGone)
    #expect(await code { try await store.undo(since: 99) } == .invalidArgument)
  }

  @Test("clear deletes by prefix and labels, as entries")
  func clear() async throws {
    for i in 0..<10 {
      try await store.put("note/\(i)", "1", labels: i < 3 ? ["x"] : [])
      try await store.put("task/\(i)", "1", labels: ["x"])
    }
    #expect(try await store.clear(prefix: "note/", labels: .all("x")) == 3)
    #expect(try await store.clear(prefix: "task/") == 10)
    #expect(try store.count() == 7)
    #expect(store.lastSequence == 33)
    #expect(try store.view(at: 20).count() == 20)
    #expect(try store.blocking.clear() == 7)
    #expect(try await store.clear() == 0)
    #expect(try store.count() == 0)
  }

  @Test("undo begins anew when others write in between, and loses none of their writes")
  func race() async throws {
    let store = try await Store.open(at: .inMemory)
    try await store.put("a", "start")
    let writer = Task {
      for i in 0..<200 { try await store.put("other/\(i % 3)", "\(i)") }
    }
    for _ in 0..<20 {
      let since = store.lastSequence
      try await store.put("a", "changed")
      do {
        try await store.undo(since: since)
        #expect(try store.text(forKey: "a") == "start")
      } catch {
        guard error.code == .conflict else { throw error }
        try await store.put("a", "start")
      }
    }
    try await writer.value
    try await store.close()
  }
}
