import Testing
import Tidemark

@Suite("The log as it was written")
struct LogTests {
  let store: Store

  init() throws { store = try Machine().open() }

  private func log(_ reader: some StoreReader, since: UInt64?) throws -> [String] {
    var lines: [String] = []
    var rows = try reader.entries(since: since)
    while let entry = try rows.next() {
      lines.append("\(entry.sequence) \(entry.kind) \(entry.key) \(entry.value.text)")
    }
    return lines
  }

  @Test("entries since a sequence come in order, deletes and touches among them")
  func inOrder() async throws {
    try await store.put("a", "1")
    try await store.write { batch in
      try batch.put("b", "2")
      try batch.delete("a")
    }
    try await store.touch("b")
    #expect(try log(store, since: 1) == ["2 put b 2", "3 delete a ", "4 touch b 2"])
    #expect(try log(store, since: 0).count == 4)
    #expect(try log(store, since: nil).count == 4)
    #expect(try log(store, since: 4) == [])
    #expect(try log(store, since: 99) == [])
  }

  @Test("the largest number there is asks for nothing, or is refused, and never traps")
  func largest() async throws {
    try await store.put("a", "1")
    #expect(try log(store, since: .max) == [])
    #expect(try log(store.view(at: 0), since: .max) == [])
    #expect(code { _ = try store.view(at: .max) } == .invalidArgument)
    #expect(code { _ = try store.diff(from: 0, to: .max) } == .invalidArgument)
    #expect(code { _ = try store.diff(from: .max, to: .max) } == .invalidArgument)
    #expect(code { try store.blocking.undo(since: .max) } == .invalidArgument)
    #expect(try store.history(ofKey: "a", limit: .max).count == 1)
    #expect(try store.history(ofKey: "a", limit: .min).isEmpty)
    let last = EntryCursor(epoch: .max, sequence: .max)
    #expect(
      await code { for try await _ in store.changes(since: last) { break } } == .historyDiverged)
    for text in ["s18446744073709551615", "t9223372036854775807.0.18446744073709551615"] {
      let order = text.hasPrefix("s") ? EntryQuery.Order.sequence : .time
      for descending in [false, true] {
        let query = EntryQuery(order: order, descending: descending)
        let page = try store.page(query, limit: .max, after: PageCursor(text))
        #expect(page.entries.count == (descending ? 1 : 0))
      }
    }
    for seconds in [Int64.min, .max] {
      #expect(try store.view(at: Timestamp(seconds: seconds)).sequence == (seconds > 0 ? 1 : 0))
    }
  }

  @Test("entries that come later are not among them, nor those behind a view")
  func bounded() async throws {
    try await store.put("a", "1")
    let view = try store.view()
    var rows = try store.entries(since: 0, values: false)
    try await store.put("b", "1")
    #expect(try rows.next()?.key == "a")
    #expect(try rows.next() == nil)
    #expect(try log(view, since: 0) == ["1 put a 1"])
  }

  @Test("the rest of a log whose history was dropped can still be listed")
  func rest() async throws {
    try await store.put("a", "1")
    try await store.put("b", "1")
    try await store.put("a", "2")
    try await store.compact(dropHistory: true)
    #expect(try log(store, since: nil) == ["2 put b 1", "3 put a 2"])
  }

  @Test("a difference tells what was added, changed and removed, by key")
  func difference() async throws {
    try await store.put("removed", "1")
    try await store.put("changed", "1")
    try await store.put("same", "1")
    try await store.put("added", "1")
    try await store.put("changed", "2")
    try await store.put("came and went", "1")
    try await store.delete("came and went")
    try await store.delete("removed")
    let differences = try store.diff(from: 3, to: 8)
    #expect(differences.map(\.key.text) == ["added", "changed", "removed"])
    #expect(differences.map(\.kind) == [.added, .changed, .removed])
    #expect(differences.map(\.before) == [nil, 2, 1])
    #expect(differences.map(\.after) == [4, 5, nil])
    #expect(try store.diff(from: 8, to: 3).map(\.kind) == [.removed, .changed, .added])
    #expect(try store.diff(from: 5, to: 5) == [])
    #expect(code { _ = try store.diff(from: 3, to: 9) } == .invalidArgument)
  }

  @Test("an explanation tells the versions, where they are and why")
  func explanation() async throws {
    let origin = EntryOrigin(replica: [UInt8](repeating: 1, count: 16), sequence: 5)
    try await store.put("a", "one", options: PutOptions(origin: origin))
    let view = try store.view()
    try await store.put("a", "two")
    try await store.delete("a")
    let explanation = try #require(try store.explain("a"))
    #expect(!explanation.isPresent)
    #expect(explanation.newest.kind == .delete)
    #expect(explanation.versions.map(\.sequence) == [3, 2, 1])
    #expect(explanation.versions.map(\.reason) == [.newest, .retention, .view(1)])
    #expect(explanation.versions[2].origin == origin)
    #expect(explanation.versions[0].origin == nil)
    #expect(explanation.versions.map(\.valueLength) == [0, 3, 3])
    #expect(explanation.versions.allSatisfy { $0.file.hasPrefix("log/") && $0.offset > 0 })
    #expect(explanation.versions.allSatisfy { !$0.isDurable })
    try await store.flush()
    #expect(try store.explain("a")?.versions.allSatisfy(\.isDurable) == true)
    #expect(try store.explain("b") == nil)
    #expect(try view.explain("a")?.isPresent == true)
  }

  @Test("an explanation tells of the newest versions only, and says that there are more")
  func boundedExplanation() async throws {
    for i in 0..<5 { try await store.put("a", "\(i)") }
    let two = try #require(try store.explain("a", limit: 2))
    #expect(two.versions.map(\.sequence) == [5, 4])
    #expect(two.versions.map(\.reason) == [.newest, .retention])
    #expect(two.hasMore)
    #expect(try store.explain("a", limit: 4)?.hasMore == true)
    #expect(try store.explain("a", limit: 5)?.hasMore == false)
    #expect(try store.explain("a", limit: 0)?.versions.count == 1)
    #expect(try store.explain("a")?.versions.count == 5)
    #expect(try store.view(at: 3).explain("a", limit: 2)?.versions.map(\.sequence) == [3, 2])
  }
}
