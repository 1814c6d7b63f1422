import CollectionExamples
import Testing
import Tidemark

@Suite("Examples of collections")
struct CollectionExamplesTests {
  @Test("a browser suggests while somebody types, and lists sections")
  func browser() async throws {
    let store = try await Store.open(at: .inMemory)
    let browser = try PackageBrowser(store)
    try await browser.add([
      .init(name: "zlib1g", section: "libs", size: 5, description: "compression library"),
      .init(name: "gzip", section: "utils", size: 3, description: "GNU compression utilities"),
      .init(name: "Zstd", section: "utils", size: 9, description: "fast compression"),
    ])
    #expect(try browser.suggestions(for: "z").map(\.name) == ["zlib1g", "Zstd"])
    #expect(Set(try browser.suggestions(for: "compr").map(\.name)) == ["zlib1g", "gzip", "Zstd"])
    #expect(try browser.sections() == ["libs", "utils"])
    #expect(try browser.largest(in: "utils").map(\.name) == ["Zstd", "gzip"])
    try await store.close()
  }

  @Test("a ledger's balances count each payment once, also one that was taken back")
  func ledger() async throws {
    let store = try await Store.open(at: .inMemory)
    let ledger = try Ledger(store)
    _ = try await ledger.pay("1", from: "ada", to: "bob", 30)
    let second = try await ledger.pay("2", from: "bob", to: "ada", 10)
    #expect(try await ledger.balance("ada") == -20)
    try await ledger.undo(second)
    #expect(try await ledger.balance("ada") == -30)
    #expect(try await ledger.balance("bob") == 30)
    #expect(try ledger.payments(from: "ada").map(\.amount) == [30])
    await #expect(throws: TidemarkError.self) {
      try await ledger.pay("1", from: "ada", to: "eve", 1)
    }
    try await store.close()
  }

  @Test("a list of notes is kept in a terminal, and on a screen that follows")
  func notes() async throws {
    let store = try await Store.open(at: .inMemory)
    let list = try NoteList(store)
    var screens = list.screens.makeAsyncIterator()
    #expect(try await screens.next()?.objects.isEmpty == true)
    let milk = try await list.run("add Buy milk")
    let ada = try await list.run("add Call Ada")
    #expect((milk + ada).map { String($0.dropFirst(4)) } == [" [ ] Buy milk", " [ ] Call Ada"])
    let ids = try list.notes.find(sort: [.ascending(\.isDone), .ascending(\.created)]).map(\.id)
    let done = try await list.run("done \(ids[0])")
    #expect(done == ["\(ids[0].prefix(4)) [x] Buy milk"])
    #expect(try await list.run("list") == ada + done)
    #expect(try await list.run("find MIL") == done)
    #expect(try await list.run("undo \(ids[0].uppercased())") == milk)
    #expect(try await screens.next()?.ids == ids)
    _ = try await list.run("edit \(ids[1]) Call Ada back")
    #expect(try await list.run("find back") == ["\(ids[1].prefix(4)) [ ] Call Ada back"])
    let gone = try await list.run("delete \(ids[1])")
    #expect(gone == ["deleted; undo \(ids[1]) brings it back"])
    #expect(try await list.run("done \(ids[1])") == ["no such note"])
    #expect(try await list.run("undo \(ids[1])") == ["\(ids[1].prefix(4)) [ ] Call Ada back"])
    #expect(try await list.run("done") == ["no such note"])
    #expect(try await list.run("add").first?.hasPrefix("add TEXT") == true)
    try await store.close()
  }
}
