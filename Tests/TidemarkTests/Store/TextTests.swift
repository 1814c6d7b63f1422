import Testing
import Tidemark

@Suite("Text as keys, prefixes and labels")
struct TextTests {
  let store: Store
  /// Text that is no literal.
  private let id = String(["1", "7"])

  init() throws {
    store = try Machine().open()
    try store.blocking.put("note/17", "a", labels: ["inbox", "tag/17"])
    try store.blocking.put("note/18", "b", labels: ["inbox"])
    try store.blocking.put("task/17", "c")
  }

  @Test("a prefix is any text or bytes, and a literal may hold an expression")
  func prefixes() throws {
    #expect(try store.all(prefix: "note/" + id).map(\.key) == ["note/17"])
    #expect(try store.all(prefix: "note/\(id)").map(\.key) == ["note/\(id)"])
    #expect(try store.all(prefix: ("note/" + id).prefix(5)).count == 2)
    #expect(try store.all(prefix: Array("task".utf8)).map(\.key) == [Key("task/" + id)])
    #expect(try store.count(EntryQuery(prefix: "note/" + id)) == 1)
    var keys = try store.keys(prefix: "note/" + id, labels: .all("inbox"))
    #expect(try keys.next() == "note/17")
    #expect(try store.blocking.clear(prefix: "task/" + id) == 1)
  }

  @Test("a label is any text, alone and in a filter, and a literal may hold an expression")
  func labels() async throws {
    let tag = "tag/" + id
    #expect(try store.all(labels: .all(tag)).map(\.key) == ["note/17"])
    #expect(try store.all(labels: .all("inbox").not(tag)).map(\.key) == ["note/18"])
    #expect(try store.all(labels: .any("nothing", "tag/\(id)")).map(\.key) == ["note/17"])
    try await store.put("new", "1", labels: [tag, "inbox"])
    try await store.put("literal", "1", labels: ["tag/\(id)"])
    try store.blocking.put("cut", "1", labels: [tag.prefix(3)])
    try await store.write { batch in try batch.put("batch", "1", labels: [tag]) }
    #expect(
      try store.all(labels: .any(tag)).map(\.key) == ["batch", "literal", "new", "note/17"])
    #expect(try store.entry(forKey: "cut")?.labels == ["tag"])
    #expect(try store.entry(forKey: "new")?.labels == ["inbox", EntryLabel(tag)])
  }

  @Test("a follower's prefix is any text")
  func follower() async throws {
    var changes = store.changes(
      since: .beginning, prefix: "task/" + id, delivery: .committed
    ).makeAsyncIterator()
    #expect(try await changes.next()?.entry?.key == "task/17")
  }
}
