import Testing
import Tidemark

@Suite("A tour of keys, views, changes and undo")
struct TourTests {
  @Test("it does what it says")
  func example() async throws {
    let store = try await Store.open(at: .inMemory)

    // Write: at once, or all or nothing.
    try await store.put("note/1", "Buy milk", labels: ["inbox", "2026"])
    try await store.write { batch in
      try batch.put("note/2", "Call Ada", labels: ["inbox"])
      try batch.put("note/3", "Water the plants", labels: ["done"])
    }

    // Read: by key, by label, in order.
    let text = try store.text(forKey: "note/1")
    var inbox: [String] = []
    var rows = try store.entries(prefix: "note/", labels: .all("inbox"), descending: true)
    while let entry = try rows.next() { inbox.append(entry.value.text) }

    // Every moment of the past is there.
    let before = try store.view()
    try await store.delete("note/1")
    let then = try before.text(forKey: "note/1")
    let now = try store.text(forKey: "note/1")

    // Change only what nobody else has changed meanwhile.
    if let entry = try store.entry(forKey: "note/2") {
      try await store.put("note/2", "Call Ada back", if: .sequence(entry.sequence))
    }

    // Follow from where you stopped.
    try await store.flush()
    var followed: [String] = []
    for try await change in store.changes(since: .beginning, prefix: "note/") {
      if let entry = change.entry { followed.append("\(entry.kind) \(entry.key)") }
      if followed.count == 5 { break }
    }

    // Take it all back.
    try await store.undo(since: before.sequence)
    let restored = try store.text(forKey: "note/2")
    try await store.close()

    #expect(text == "Buy milk")
    #expect(inbox == ["Call Ada", "Buy milk"])
    #expect(then == "Buy milk")
    #expect(now == nil)
    #expect(
      followed == [
        "put note/1", "put note/2", "put note/3", "delete note/1", "put note/2",
      ])
    #expect(restored == "Call Ada")
  }

  @Test("programs without tasks have the same")
  func blocking() throws {
    let store = try Store.openBlocking(at: .inMemory)
    try store.blocking.put("a", "1", durability: .durable)
    try store.blocking.write { batch in try batch.put("b", "2") }
    #expect(try store.blocking.delete("a"))
    #expect(try store.text(forKey: "b") == "2")
    try store.blocking.close()
  }
}
