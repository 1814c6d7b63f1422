import Testing
import Tidemark
import TidemarkTesting

@testable import TidemarkStore
@testable import TidemarkSwiftUI

struct Note: Codable, CollectionObject, Equatable {
  var id: String
  var text: String
  var isDone = false

  static func collection(in store: Store) throws -> ObjectCollection<Note, String> {
    try store.collection(
      named: "notes",
      CollectionSchema(indexes: [
        ObjectIndex("list", .ascending(\.isDone), .folded(\.text)),
        ObjectIndex("text order", .folded(\.text)), ObjectIndex(text: "text", \.text),
      ]))
  }
}

/// Waits until something holds that a task on the main actor brings about.
@MainActor func until(
  _ holds: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  for _ in 0..<60_000 {
    if holds() { return }
    try await Task.sleep(for: .milliseconds(1))
  }
  Issue.record("it did not come to hold", sourceLocation: sourceLocation)
}

@Suite(
  "The states that views show",
  .store { store in
    let notes = try Note.collection(in: store)
    try await notes.put(Note(id: "1", text: "Buy rice"))
    try await notes.put(Note(id: "2", text: "Ask Eve"))
    try await notes.put(Note(id: "3", text: "Clean the rice cooker", isDone: true))
    try await notes.indexesBuilt()
  })
@MainActor
struct LiveStateTests {
  private let store: Store
  private let notes: ObjectCollection<Note, String>

  init() throws {
    store = try Store.underTest
    notes = try Note.collection(in: store)
  }

  private func state<Request: LiveRequest>(_ request: Request) -> LiveState<Request> {
    let state = LiveState(request)
    state.follow(request, in: (store, nil))
    return state
  }

  @Test("the first answer of every request is there at once, and commits bring later ones")
  func firstAnswers() async throws {
    let list = state(ListRequest<Note>(\.isDone == false, sort: [.folded(\.text)]))
    let one = state(ObjectRequest<Note>("1"))
    let none = state(ObjectRequest<Note>("9"))
    let count = state(CountRequest<Note>(\.isDone == false))
    let found = state(SearchRequest<Note>("text", "rice"))
    #expect(list.value.ids == ["2", "1"] && one.value?.text == "Buy rice" && none.value == nil)
    #expect(count.value == 2 && Set(found.value.map(\.id)) == ["1", "3"])
    #expect(list.isLoaded && one.isLoaded && none.isLoaded && count.isLoaded && found.isLoaded)
    #expect(list.error == nil && found.error == nil)
    try await notes.put(Note(id: "9", text: "Rice pudding"))
    try await notes.update("1") { $0.text = "Buy bread" }
    try await until {
      list.value.ids == ["2", "1", "9"] && one.value?.text == "Buy bread" && none.value != nil
        && count.value == 3 && Set(found.value.map(\.id)) == ["3", "9"]
    }
  }

  @Test("a property that is set changes the answer at once, and what is declared anew, too")
  func changes() async throws {
    let list = state(ListRequest<Note>(\.isDone == false))
    list.condition = .everything
    #expect(list.value.ids == ["1", "2", "3"])
    list.sort = [.folded(\.text, descending: true)]
    #expect(list.value.ids == ["3", "1", "2"])
    list.limit = 1
    #expect(list.value.ids == ["3"] && list.limit == 1)
    // The view is drawn anew with the same arguments, then with others.
    list.follow(ListRequest(\.isDone == false), in: (store, nil))
    #expect(list.value.ids == ["3"])
    list.follow(ListRequest(\.isDone == true, limit: 5), in: (store, nil))
    #expect(list.value.ids == ["3"] && list.limit == 5)
    list.follow(ListRequest(\.isDone == false), in: (store, nil))
    #expect(list.value.ids == ["1", "2"])
    // Later commits belong to the newest request alone.
    try await notes.delete("1")
    try await until { list.value.ids == ["2"] }
    let found = state(SearchRequest<Note>("text"))
    #expect(found.value.isEmpty && found.error == nil)
    found.query.text = "rice cook"
    #expect(found.value.map(\.id) == ["3"])
    let one = state(ObjectRequest<Note>("2"))
    one.id = "3"
    #expect(one.value?.id == "3")
    one.id = "8"
    #expect(one.value == nil && one.isLoaded)
  }

  @Test("another store of the environment is followed, and none is an error")
  func stores() async throws {
    let list = LiveState(ListRequest<Note>())
    #expect(!list.isLoaded && list.error == nil)
    list.follow(ListRequest(), in: (nil, nil))
    #expect((list.error as? TidemarkError)?.code == .invalidArgument && list.value.isEmpty)
    #expect(throws: TidemarkError.self) { try list.collection }
    list.follow(ListRequest(), in: (store, nil))
    #expect(list.error == nil && list.value.count == 3)
    let other = try await Store.open(at: .inMemory)
    list.follow(ListRequest(), in: (other, nil))
    #expect(list.isLoaded && list.value.isEmpty)
    try await list.collection.put(Note(id: "5", text: "there"))
    try await until { list.value.ids == ["5"] }
    #expect(try notes.get("5") == nil)
    try await other.close()
  }

  @Test("a request that cannot be answered has an error at once, until there is another one")
  func errors() async throws {
    let list = state(ListRequest<Note>(\.text == "Ask Eve"))
    #expect((list.error as? TidemarkError)?.code == .indexMissing)
    #expect(list.value.isEmpty && !list.isLoaded)
    list.condition = \.isDone == true
    #expect(list.error == nil && list.value.ids == ["3"])
    let found = state(SearchRequest<Note>("words", "rice"))
    #expect((found.error as? TidemarkError)?.code == .indexMissing)
    found.index = "text"
    #expect(found.error == nil && found.value.count == 2)
    try await store.close()
    list.limit = 4
    #expect((list.error as? TidemarkError)?.code == .closed && list.value.isEmpty)
  }

  @Test("objects that cannot be read are told of, and the last version of one stays")
  func unreadable() async throws {
    let list = state(ListRequest<Note>(\.isDone == false))
    let one = state(ObjectRequest<Note>("1"))
    let count = state(CountRequest<Note>(\.isDone == false))
    let found = state(SearchRequest<Note>("text", "eve"))
    try await store.put("notes/1", "no JSON")
    try await until {
      [list.unreadable, one.unreadable, count.unreadable, found.unreadable]
        .allSatisfy { $0.map { $0.object?.id } == ["1"] }
    }
    #expect(list.value.ids == ["2"] && one.value?.text == "Buy rice" && found.value.count == 1)
    let late = state(ObjectRequest<Note>("1"))
    #expect(late.value == nil && late.unreadable.count == 1 && late.error == nil)
    try await notes.put(Note(id: "1", text: "whole again"))
    try await until {
      list.unreadable.isEmpty && one.value?.text == "whole again" && count.unreadable.isEmpty
        && found.unreadable.isEmpty && late.value != nil
    }
  }

  @Test("a state that nobody holds any more stops watching the store")
  func end() async throws {
    var list: LiveState? = state(ListRequest<Note>())
    weak let gone = list
    list?.limit = 2
    #expect(!store.hub.isIdle)
    list = nil
    #expect(gone == nil)
    try await until { store.hub.isIdle }
  }

  @Test("a suspended store is answered from when it is resumed")
  func suspended() async throws {
    let before = state(ListRequest<Note>())
    try await store.suspend()
    let list = state(ListRequest<Note>(limit: 2))
    #expect(!list.isLoaded && list.error == nil && list.value.isEmpty)
    #expect(before.value.count == 3 && before.error == nil)
    try await store.resume()
    try await until { list.isLoaded }
    #expect(list.value.count == 2)
    try await notes.put(Note(id: "4", text: "after"))
    try await until { before.value.count == 4 }
  }

  @Test("while an index is being built a search has an error, then its answer")
  func building() async throws {
    let many = try await Store.open(at: .inMemory)
    let plain = try many.collection(Note.self, named: "notes")
    try await many.write { batch in
      for id in 0..<20_000 { try batch.put(Note(id: "\(id)", text: "word \(id)"), in: plain) }
    }
    let found = LiveState(SearchRequest<Note>("text", "19999"))
    found.follow(found.request, in: (many, nil))
    if !found.isLoaded {
      #expect((found.error as? TidemarkError)?.code == .indexMissing)
    }
    try await until { found.isLoaded }
    #expect(found.value.map(\.id) == ["19999"] && found.error == nil)
    try await many.close()
  }

  @Test("conditions and orders are equal when they are written alike")
  func equality() {
    func condition(_ text: String, _ isDone: Bool) -> ObjectCondition<Note> {
      (\.isDone == isDone && .hasPrefix(\.text, text)) || !.oneOf(\.id, ["1", "2"])
    }
    #expect(condition("a", true) == condition("a", true))
    #expect(condition("a", true) != condition("b", true))
    #expect(condition("a", true) != condition("a", false))
    #expect(ObjectCondition<Note>.everything == .everything)
    #expect(ObjectCondition<Note>.labels(.all("a")) != .labels(.all("b")))
    #expect([ObjectOrder<Note>.folded(\.text)] == [.folded(\.text)])
    #expect(ObjectOrder<Note>.folded(\.text) != .folded(\.text, descending: true))
  }
}
