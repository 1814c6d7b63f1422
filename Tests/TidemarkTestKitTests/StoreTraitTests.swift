import Testing
import Tidemark
import TidemarkTesting

@Suite("A store for each test", .store { try await $0.put("seed", "1") })
struct StoreTraitTests {
  @Test("cases and tests beside each other have stores of their own", arguments: 0..<8)
  func isolated(number: Int) async throws {
    let store = try Store.underTest
    #expect(try store.value(forKey: "seed") != nil && store.lastSequence == 1)
    try await store.put("case", "\(number)")
    await Task.yield()
    #expect(try store.value(forKey: "case") == Array("\(number)".utf8))
    async let inChild = try Store.underTest.lastSequence
    #expect(try await inChild == 2)
  }

  @Test("a test's own trait takes the place of the suite's", .store())
  func own() throws { #expect(try Store.underTest.lastSequence == 0) }

  @Test("the store is closed when the test is over, also when it throws")
  func closed() async throws {
    struct Stop: Error {}
    let kept = Kept()
    let trait = StoreTrait.store()
    let test = try #require(Test.current)
    await #expect(throws: Stop.self) {
      try await trait.provideScope(for: test, testCase: nil) {
        await kept.keep(try Store.underTest)
        throw Stop()
      }
    }
    let store = try #require(await kept.store)
    #expect(throws: TidemarkError.self) { try store.value(forKey: "seed") }
    #expect(try Store.underTest !== store)
  }

  private actor Kept {
    var store: Store?

    func keep(_ store: Store) { self.store = store }
  }
}

@Suite("Tests without a store")
struct NoStoreTests {
  @Test("say that the trait is missing")
  func missing() {
    let error = #expect(throws: TidemarkError.self) { try Store.underTest }
    #expect(error?.code == .invalidArgument)
  }
}
