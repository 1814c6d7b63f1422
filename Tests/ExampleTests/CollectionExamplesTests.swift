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
    #expect(try await list.run("add Buy milk") == ["1 [ ] Buy milk"])
    #expect(try await list.run("add Call Ada") == ["2 [ ] Call Ada"])
    #expect(try await list.run("done 1") == ["1 [x] Buy milk"])
    #expect(try await list.run("list") == ["2 [ ] Call Ada", "1 [x] Buy milk"])
    #expect(try await list.run("find MIL") == ["1 [x] Buy milk"])
    #expect(try await list.run("undo 1") == ["1 [ ] Buy milk"])
    #expect(try await screens.next()?.ids == [1, 2])
    #expect(try await list.run("done 9") == ["no such note"])
    try await store.close()
  }
}
