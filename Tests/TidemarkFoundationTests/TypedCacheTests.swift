import Testing
import Tidemark
import TidemarkFoundation

@Suite("Caches of Codable values")
struct TypedCacheTests {
  struct Article: Codable, Sendable, Hashable {
    var title: String
    var tags: [String] = []
  }

  struct Other: Codable, Sendable { var number: Int }

  @Test("values come back as they were put, equal ones are equal bytes, other types are an error")
  func codable() async throws {
    let store = try await Store.open(at: .inMemory)
    let articles = try store.cache(of: Article.self, prefix: "articles/")
    let dunes = Article(title: "Dünen", tags: ["sand", "wind"])
    try await articles.put("1", dunes, labels: ["nature"], hash: [7])
    try await articles.put("2", dunes)
    #expect(try articles.value(forKey: "1") == dunes)
    #expect(try articles.entries().map(\.value) == [dunes, dunes])
    #expect(try articles.entries(labels: .all("nature")).map(\.key) == ["1"])
    #expect(try store.value(forKey: "articles/1") == store.value(forKey: "articles/2"))
    let others = try store.cache(of: Other.self, prefix: "articles/")
    let error = #expect(throws: TidemarkError.self) { try others.value(forKey: "1") }
    #expect(error?.code == .coding)
    let source = CacheSource<Other> { _ in .value(Other(number: 5)) }
    #expect(try await others.read("1", .cacheFirst, from: source).value?.number == 5)
    try await store.close()
  }

  struct Tree: Codable, Sendable { var trees: [Tree] = [] }

  @Test(
    "a value that nests too deep is an error and does not end the process", arguments: [300, 513])
  func deep(levels: Int) async throws {
    let store = try await Store.open(at: .inMemory)
    let trees = try store.cache(of: Tree.self, prefix: "trees/")
    for (opening, closing) in [("[", "]"), ("{\"trees\":[", "]}"), ("[\"[\\\"[\",", "]")] {
      let text =
        String(repeating: opening, count: levels) + String(repeating: closing, count: levels)
      try await store.cache(prefix: "trees/").put("1", Array(text.utf8))
      let error = #expect(throws: TidemarkError.self) { try trees.value(forKey: "1") }
      #expect(error?.code == .coding)
    }
    try await trees.put("2", Tree(trees: [Tree(), Tree(trees: [Tree()])]))
    #expect(try trees.value(forKey: "2")?.trees.count == 2)
    try await store.close()
  }

  @Test("a new version of a type takes a namespace of its own")
  func versions() async throws {
    let store = try await Store.open(at: .inMemory)
    let first = try await store.cache(of: Article.self, prefix: "a/", version: 1)
    try await first.put("1", Article(title: "old"))
    let second = try await store.cache(of: Other.self, prefix: "a/", version: 2)
    #expect(try second.value(forKey: "1") == nil && first.value(forKey: "1") == nil)
    try await second.put("1", Other(number: 2))
    #expect(try second.value(forKey: "1")?.number == 2)
    try await store.close()
  }
}
