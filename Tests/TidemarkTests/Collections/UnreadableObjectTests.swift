import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("Objects that cannot be read", .timeLimit(.minutes(20)))
struct UnreadableObjectTests {
  enum Kind: String, Codable, Sendable { case task, memo }

  struct Entry: Codable, Identifiable, Equatable, Sendable {
    var id: String
    var kind = Kind.task
    var size: Int
    var title = "a title"
  }

  private static let indexes: [ObjectIndex<Entry>] = [
    ObjectIndex("size", \.size), ObjectIndex(text: "text", \.title),
  ]

  private static let good = (1...3).map { Entry(id: "\($0)", size: $0) }

  /// Values that a newer program, a peer or an accident leaves under the key `e/x`.
  private static let bad = [
    #"{"id":"x","kind":"event","size":1,"title":"a"}"#, #"{"id":"x","kind":"task","title":"a"}"#,
    #"{"id":"2","kind":"task","size":2,"title":"a"}"#, "no JSON", "",
    #"{"id":"x","kind":"task","size":"1","title":"a"}"#,
  ]

  private func opened(
    _ bad: String, indexes: [ObjectIndex<Entry>] = Self.indexes
  ) async throws -> (Store, ObjectCollection<Entry, String>) {
    let store = try await Store.open(at: .inMemory)
    let entries = try store.collection(
      Entry.self, named: "e", CollectionSchema(indexes: indexes))
    for entry in Self.good { try await entries.put(entry) }
    try await store.put("e/x", bad)
    return (store, entries)
  }

  @Test("every reader tells of them and goes on, or fails with the first of them", arguments: bad)
  func readers(bad: String) async throws {
    let (store, entries) = try await opened(bad)
    let view = entries.at(try store.view())
    let plain = try store.collection(Entry.self, named: "e")
    func check<Answer: Equatable>(
      _ wanted: Answer, _ location: SourceLocation = #_sourceLocation,
      _ read: (((TidemarkError) -> Void)?) throws -> Answer
    ) throws {
      var told: [TidemarkError] = []
      #expect(try read { told.append($0) } == wanted, sourceLocation: location)
      #expect(told.map { $0.object?.id } == ["x"], sourceLocation: location)
      #expect(told.map(\.code) == [.coding], sourceLocation: location)
      let error = #expect(throws: TidemarkError.self, sourceLocation: location) { try read(nil) }
      #expect(error?.object?.id == "x" && error?.code == .coding, sourceLocation: location)
    }
    try check(Self.good) { try entries.all(unreadable: $0) }
    try check(Self.good) { try entries.find(unreadable: $0) }
    try check(Self.good) { try entries.find(\.size > 0, unreadable: $0) }
    try check(Self.good) { try entries.find(\.title == "a title", scanning: true, unreadable: $0) }
    try check(Self.good) { try plain.find(unreadable: $0) }
    try check(Self.good) { try view.find(\.size > 0, scanning: true, unreadable: $0) }
    try check(["3", "2", "1"]) {
      try entries.find(sort: [.descending(\.size)], unreadable: $0).map(\.id)
    }
    try check(["1", "2", "3"]) {
      try entries.search("text", "title", unreadable: $0).map(\.object.id).sorted()
    }
    try check(["2", "3"]) { try entries.ids(where: \.size > 1, unreadable: $0) }
    try check(2) { try entries.count(where: \.size > 1, unreadable: $0) }
    try check(1) { try entries.min(\.size, unreadable: $0) }
    try check(3) { try entries.max(\.size, unreadable: $0) }
    try check(Self.good[0]) { try entries.first(\.size > 0, unreadable: $0) }
    try check([1, 2, 3]) { try entries.distinct(\.size, unreadable: $0) }
    try check([Entry?.none]) { told -> [Entry?] in
      try entries.history(of: "x").map { version in
        if let error = version.unreadable { if let told { told(error) } else { throw error } }
        return version.object
      }
    }
    let page = try entries.page(\.size > 0, limit: 2)
    #expect(page.objects == Array(Self.good[..<2]))
    #expect(page.unreadable.map { $0.object?.id } == ["x"])
    let next = try entries.page(\.size > 0, limit: 2, after: page.next)
    #expect(next.objects == [Self.good[2]] && next.unreadable.isEmpty)
    #expect(throws: TidemarkError.self) { try entries.get("x") }
    #expect(try entries.count() == 4)
    try await store.close()
  }

  @Test("an index never counts as complete over them", arguments: bad)
  func completeness(bad: String) async throws {
    let (store, entries) = try await opened(bad)
    try await entries.indexesBuilt()
    #expect(try entries.indexes.map(\.isComplete) == [false, false])
    #expect(try entries.indexes.map(\.unindexed) == [1, 1])
    #expect(try entries.indexes.allSatisfy { $0.objectsDone == nil })
    #expect(try entries.unindexed() == ["x"])
    // The same when they were there first.
    let built = try store.collection(
      Entry.self, named: "e", CollectionSchema(indexes: [ObjectIndex("title", \.title)]))
    try await built.indexesBuilt()
    #expect(try built.unindexed() == ["x"])
    #expect(throws: TidemarkError.self) { try built.count(where: \.title == "a title") }
    try await entries.put(Entry(id: "x", size: 4))
    #expect(try built.indexes.map(\.isComplete) == [true])
    #expect(try built.count(where: \.title == "a title") == 4)
    try await store.close()
  }

  @Test("an observation tells of them, goes on, and has them when they can be read", arguments: bad)
  @MainActor func observations(bad: String) async throws {
    let (store, entries) = try await opened(bad)
    let told = Lock(0)
    var lists = entries.observe(\.size > 0, sort: [.ascending(\.size)]).makeAsyncIterator()
    var whole = entries.observe().makeAsyncIterator()
    var values = entries.values(for: "x") { _ in told.withLock { $0 += 1 } }.makeAsyncIterator()
    var counts = entries.observeCount(where: \.size > 0) { _ in told.withLock { $0 += 1 } }
      .makeAsyncIterator()
    let model = ObjectModel(entries, id: "x")
    let query = QueryModel(entries, \.size > 0)
    func wait(_ holds: () -> Bool) async throws {
      while !holds(), model.error == nil, query.error == nil {
        try await Task.sleep(for: .milliseconds(1))
      }
    }
    try await wait { model.unreadable != nil && query.isLoaded }
    #expect(query.objects.ids == ["1", "2", "3"])
    #expect(query.objects.unreadable.map { $0.object?.id } == ["x"])
    var list = try #require(try await lists.next())
    #expect(list.ids == ["1", "2", "3"] && list.unreadable.map { $0.object?.id } == ["x"])
    list = try #require(try await whole.next())
    #expect(list.ids == ["1", "2", "3"] && list.unreadable.map { $0.object?.id } == ["x"])
    #expect(try await counts.next() == 3)
    #expect(told.withLock { $0 } > 0)
    try await entries.put(Entry(id: "x", size: 9))
    #expect(try await values.next()??.size == 9)
    list = try #require(try await lists.next())
    #expect(list.ids == ["1", "2", "3", "x"] && list.unreadable.isEmpty)
    list = try #require(try await whole.next())
    #expect(list.ids == ["1", "2", "3", "x"] && list.unreadable.isEmpty)
    #expect(try await counts.next() == 4)
    try await wait { model.object?.size == 9 && query.objects.count == 4 }
    #expect(model.unreadable == nil && query.objects.unreadable.isEmpty)
    try await store.put("e/x", bad)
    list = try #require(try await lists.next())
    #expect(list.ids == ["1", "2", "3"] && list.changes.removed == ["x"])
    #expect(list.unreadable.map { $0.object?.id } == ["x"])
    try await store.put("e/y", bad)
    try await store.delete("e/x")
    list = try #require(try await lists.next())
    #expect(list.ids == ["1", "2", "3"] && list.unreadable.map { $0.object?.id } == ["y"])
    try await wait { model.unreadable != nil || model.object == nil }
    try await wait { query.objects.unreadable.first?.object?.id == "y" }
    #expect(query.objects.ids == ["1", "2", "3"])
    #expect(model.error == nil && query.error == nil)
    try await store.close()
  }

  @Test("a key that ends with no id of the collection is told of, too")
  func keys() async throws {
    struct Item: Codable, Identifiable, Sendable { var id: Int }
    let store = try await Store.open(at: .inMemory)
    let items = try store.collection(
      Item.self, named: "i", CollectionSchema(indexes: [ObjectIndex("id", \.id)]))
    try await items.put(Item(id: 7))
    for (key, value) in [("007", 7), ("+7", 7), ("x", 1), ("7 ", 7)] {
      try await store.put("i/\(key)", #"{"id":\#(value)}"#)
      var told: [String?] = []
      #expect(try items.find(\.id > 0) { told.append($0.object?.id) }.map(\.id) == [7])
      #expect(try items.ids { told.append($0.object?.id) } == [7])
      #expect(try items.all { told.append($0.object?.id) }.map(\.id) == [7])
      #expect(told == [key, key, key])
      #expect(throws: TidemarkError.self) { try items.ids() }
      try await store.delete("i/\(key)")
    }
    // Texts that are equal for Swift may differ in bytes: they are two keys.
    let entries = try store.collection(Entry.self, named: "e")
    for (one, other) in [("é", "e\u{301}"), ("Å", "\u{212B}"), ("가", "\u{1100}\u{1161}")] {
      #expect(one == other)
      try await entries.put(Entry(id: one, size: 1))
      await #expect(throws: TidemarkError.self) {
        try await entries.update(one) { $0.id = other }
      }
      #expect(try entries.get(other) == nil)
    }
    try await store.close()
  }
}
