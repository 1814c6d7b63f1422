import Testing
import Tidemark
import TidemarkTestKit

@Suite("Views")
struct ViewTests {
  let machine = Machine()
  let store: Store

  init() throws { store = try machine.open() }

  @Test("a view shows its state whatever is written later")
  func isolated() async throws {
    try await store.put("a", "1", labels: ["x"])
    try await store.put("b", "1")
    let view = try store.view()
    try await store.put("a", "2", labels: ["y"])
    try await store.delete("b")
    try await store.put("c", "1")
    #expect(view.sequence == 2)
    #expect(try view.state() == ["a": "1", "b": "1"])
    #expect(try view.text(forKey: "a") == "1")
    #expect(try view.withValue(forKey: "b") { $0.byteCount } == 1)
    #expect(try view.contains("b"))
    #expect(try !view.contains("c"))
    #expect(try view.count() == 2)
    #expect(try view.found(EntryQuery(labels: .all("x"))) == ["a"])
    #expect(try view.found(EntryQuery(labels: .all("y"))) == [])
    #expect(try view.labels() == [LabelCount(label: "x", count: 1)])
    #expect(try view.entry(forKey: "a")?.labels == ["x"])
    #expect(try store.state() == ["a": "2", "c": "1"])
  }

  @Test("every sequence of the past can be seen")
  func everySequence() async throws {
    var states: [[String: String]] = [[:]]
    for i in 0..<40 {
      let key = "k\(i % 7)"
      if i % 5 == 4 {
        guard try await store.delete(key) else { continue }
      } else {
        try await store.put(key, "\(i)")
      }
      states.append(try store.state())
    }
    for (sequence, state) in states.enumerated() {
      #expect(try store.view(at: UInt64(sequence)).state() == state)
    }
  }

  @Test("a sequence that was not reached yet is refused")
  func future() async throws {
    try await store.put("a", "1")
    #expect(code { _ = try store.view(at: 2) } == .invalidArgument)
  }

  @Test("a view keeps what it shows from a compaction that drops history")
  func pinned() async throws {
    try await store.put("a", "1")
    try await store.put("b", "1")
    let view = try store.view()
    try await store.put("a", "2")
    try await store.delete("b")
    try await store.compact(dropHistory: true)
    #expect(try view.state() == ["a": "1", "b": "1"])
    #expect(try store.state() == ["a": "2"])
  }

  @Test("history that was dropped is refused, not guessed")
  func dropped() async throws {
    try await store.put("a", "1")
    try await store.put("a", "2")
    try await store.put("a", "3")
    try await store.compact(dropHistory: true)
    #expect(code { _ = try store.view(at: 1) } == .historyGone)
    #expect(try store.view(at: 3).state() == ["a": "3"])
    #expect(code { _ = try store.entries(since: 0) } == .historyGone)
  }

  @Test("a view keeps its store open")
  func keepsOpen() throws {
    func view() throws -> StoreView {
      let store = try Machine().open()
      try store.blocking.put("a", "1")
      return try store.view()
    }
    #expect(try view().text(forKey: "a") == "1")
  }
}
