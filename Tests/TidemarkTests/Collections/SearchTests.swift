import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

struct Page: Codable, Identifiable, Equatable, Sendable {
  var id: Int
  var title: String
  var body: String
  var shelf = 0
}

@Suite("Full-text search")
struct SearchTests {
  private func pages(_ store: Store) throws -> ObjectCollection<Page, Int> {
    try store.collection(
      Page.self, named: "pages",
      CollectionSchema(indexes: [
        ObjectIndex(text: "text") { [($0.title, 3), ($0.body, 1)] },
        ObjectIndex("shelf", \.shelf),
      ]))
  }

  private func opened(_ bodies: [String]) async throws -> (Store, ObjectCollection<Page, Int>) {
    let store = try await Store.open(at: .inMemory)
    let pages = try pages(store)
    try await store.write { batch in
      for (id, body) in bodies.enumerated() {
        try batch.put(Page(id: id, title: "page \(id)", body: body, shelf: id % 2), in: pages)
      }
    }
    return (store, pages)
  }

  @Test("several words, beginnings and phrases are found without regard to case and accents")
  func words() async throws {
    let (store, pages) = try await opened([
      "Rice cooker with a steamer", "Cooker, no rice here: noodles", "The ÅNGSTRÖM unit",
      "Ёлка в лесу", "straße und Gasse", "東京都に住む", "rice", "cook the rice",
    ])
    func ids(_ query: TextQuery) throws -> Set<Int> {
      Set(try pages.search("text", query).map(\.object.id))
    }
    #expect(try ids("rice cooker") == [0, 1])
    #expect(try ids("rice cook") == [0, 1, 7])
    #expect(try ids(TextQuery("rice cook", completesLast: false)) == [7])
    #expect(try ids("rice cook ") == [7])
    #expect(try ids(TextQuery("rice cooker", match: .phrase)) == [0])
    #expect(try ids(TextQuery("the ric", match: .phrase)) == [7])
    #expect(try ids(TextQuery("noodles steamer", match: .any)) == [0, 1])
    #expect(try ids("angstrom") == [2])
    #expect(try ids("елка") == [3])
    #expect(try ids("STRASSE") == [4])
    #expect(try ids(TextQuery("東京", match: .phrase)) == [5])
    #expect(try ids(TextQuery("京東", match: .phrase)) == [])
    #expect(try ids("page") == Set(0..<8))
    #expect(try ids("nothing") == [])
    #expect(try ids("") == [])
    #expect(try ids(" .,- ") == [])
    // A phrase does not cross fields.
    #expect(try ids(TextQuery("6 rice", match: .phrase)) == [])
    try await store.close()
  }

  @Test("the best comes first: rare words, often, in short texts and in titles")
  func ranking() async throws {
    let store = try await Store.open(at: .inMemory)
    let pages = try pages(store)
    let filler = String(repeating: "common words ", count: 20)
    for (id, body) in [filler + "kiwi", "kiwi common", "kiwi kiwi common", filler].enumerated() {
      try await pages.put(Page(id: id, title: "x", body: body))
    }
    try await pages.put(Page(id: 4, title: "kiwi", body: filler))
    let hits = try pages.search("text", "kiwi")
    #expect(hits.map(\.object.id).last == 0)
    #expect(hits.map(\.object.id).first == 2)
    #expect(hits.map(\.score) == hits.map(\.score).sorted(by: >))
    #expect(try pages.search("text", TextQuery("kiwi common", match: .any)).first?.object.id == 2)
    #expect(try pages.search("text", "kiwi", limit: 2).count == 2)
    try await store.close()
  }

  @Test("the index follows what is written, and conditions go with the words")
  func followed() async throws {
    let (store, pages) = try await opened(["alpha", "alpha", "beta", "alpha"])
    #expect(try pages.search("text", "alpha", where: \.shelf == 1).map(\.object.id) == [1, 3])
    try await pages.update(1) { $0.body = "beta" }
    try await pages.delete(3)
    #expect(Set(try pages.search("text", "alpha").map(\.object.id)) == [0])
    #expect(Set(try pages.search("text", "beta").map(\.object.id)) == [1, 2])
    let before = store.lastSequence
    try await pages.delete(2)
    try await store.undo(since: before)
    #expect(Set(try pages.search("text", "beta").map(\.object.id)) == [1, 2])
    try await pages.update(2) { $0.shelf = 7 }
    #expect(try pages.search("text", "beta", where: \.shelf == 7).map(\.object.id) == [2])
    let error = #expect(throws: TidemarkError.self) { try pages.search("none", "x") }
    #expect(error?.code == .indexMissing)
    try await store.close()
  }

  @Test("random documents are found by words, in segments and without, as a plain look finds them")
  func random() async throws {
    let seed = UInt64.random(in: 0 ... .max)
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    let disk = MemoryFileSystem()
    let configuration = Store.Configuration(on: disk)
    var store = try await Store.open(at: "/s", configuration: configuration)
    var pages = try pages(store)
    var bodies: [Int: [String]] = [:]
    func word() -> String {
      let number = Int.random(in: 0..<60, using: &random)
      return String(UnicodeScalar(UInt8(97 + number % 6))) + "\(number * number % 60)"
    }
    for round in 0..<12 {
      try await store.write { batch in
        for _ in 0..<300 {
          let id = Int.random(in: 0..<2_500, using: &random)
          if Int.random(in: 0..<6, using: &random) == 0 {
            bodies[id] = nil
            try batch.delete(id, in: pages)
          } else {
            let words = (0..<Int.random(in: 1..<12, using: &random)).map { _ in word() }
            bodies[id] = words
            try batch.put(Page(id: id, title: "", body: words.joined(separator: " ")), in: pages)
          }
        }
      }
      if round % 4 == 3 {
        let number = try #require(pages.core.indexes?.now.catalog.rows.first { $0.isText }?.number)
        // A thread may be at it already.
        while try SearchIndex.catalog(store.engine, number).segments.isEmpty {
          try store.indexes.texts(number).merge()
          await Task.yield()
        }
        if round == 7 {
          try await store.close()
          store = try await Store.open(at: "/s", configuration: configuration)
          pages = try self.pages(store)
        }
      }
      for _ in 0..<8 { try check(pages, bodies, word(), word(), "round \(round)") }
    }
    #expect(try pages.core.firstDisagreement() == nil)
    try await store.close()
  }

  private func check(
    _ pages: ObjectCollection<Page, Int>, _ bodies: [Int: [String]], _ a: String, _ b: String,
    _ words: Comment
  ) throws {
    func found(_ query: TextQuery) throws -> Set<Int> {
      Set(try pages.search("text", query, limit: .max).map(\.object.id))
    }
    func wanted(_ holds: ([String]) -> Bool) -> Set<Int> {
      Set(bodies.filter { holds($0.value) }.keys)
    }
    #expect(
      try found(TextQuery("\(a) \(b)", completesLast: false))
        == wanted { $0.contains(a) && $0.contains(b) }, words)
    #expect(
      try found(TextQuery("\(a) \(b)", match: .any, completesLast: false))
        == wanted { $0.contains(a) || $0.contains(b) }, words)
    #expect(
      try found(TextQuery("\(a) \(b)", match: .phrase, completesLast: false))
        == wanted { words in zip(words, words.dropFirst()).contains { $0 == a && $1 == b } }, words)
    let prefix = String(a.prefix(2))
    #expect(
      try found(TextQuery(prefix)) == wanted { $0.contains { $0.hasPrefix(prefix) } }, words)
  }

  @Test("a merge that was prepared before another process had the store is not committed")
  func takeover() async throws {
    let disk = MemoryFileSystem()
    let configuration = Store.Configuration(on: disk)
    let first = try await Store.open(at: "/s", configuration: configuration)
    try await first.put("a", "1")
    var batch = OperationBatch()
    batch.takeovers = first.engine.takeovers
    let key = SearchKeys.lengths(7, 7)
    try batch.addDerived(key.rawSpan, key.rawSpan)
    try await first.suspend()
    // Nobody has written: everything still holds.
    try await first.resume()
    _ = try first.engine.stage(batch)
    try await first.suspend()
    let second = try await Store.open(at: "/s", configuration: configuration)
    try await second.put("a", "2")
    try await second.close()
    try await first.resume()
    #expect { try first.engine.stage(batch) } throws: {
      ($0 as? TidemarkError)?.code == .cancelled
    }
    batch.takeovers = first.engine.takeovers
    _ = try first.engine.stage(batch)
    try await first.close()
  }

  @Test("a search shows one state: an object that is written while it runs is there as it was")
  func oneState() async throws {
    let (store, pages) = try await opened(["a red house", "a red door", "a blue one"])
    let rows = try #require(pages.core.indexes?.now.catalog.rows)
    let number = try #require(rows.first(where: \.isText)?.number)
    for match in [TextQuery.Match.all, .phrase] {
      let search = try TextSearch(
        store, store.indexes.texts(number), TextQuery("a red", match: match))
      try await pages.update(0) { $0.body = "a green house" }
      try await pages.update(1) { $0.body = "a red gate" }
      let found = try search.ranked().compactMap { try search.accepts($0.document) }
      #expect(found.count == 2)
      let bodies = try [0, 1].map { try pages.core.object($0, in: search.view)?.body }
      #expect(bodies == ["a red house", "a red door"])
      try await pages.update(0) { $0.body = "a red house" }
      try await pages.update(1) { $0.body = "a red door" }
    }
    try await store.close()
  }

  @Test("a search is refused while objects are looked at that came past the index, as a query is")
  func unready() async throws {
    let (store, pages) = try await opened(["alpha", "beta"])
    let indexes = try #require(pages.core.indexes)
    indexes.change { state in (state.mayHaveMarks, state.isBuilding) = (true, true) }
    let calls: [() throws -> Int] = [
      { try pages.search("text", "alpha").count }, { try pages.find(\.shelf == 0).count },
      { try pages.distinct(\.shelf).count },
    ]
    for call in calls {
      #expect { try call() } throws: { ($0 as? TidemarkError)?.code == .indexMissing }
    }
    indexes.change { $0.isBuilding = false }
    #expect(try calls.map { try $0() } == [1, 1, 2])
    try await store.close()
  }

  @Test("a snippet shows where most of the words are, with their ranges")
  func snippets() {
    let text =
      String(repeating: "filler ", count: 40) + "the rice cooker steams rice. "
      + String(repeating: "filler ", count: 40)
    let snippet = TextSnippet(of: text, matching: "rice cook", words: 8)
    #expect(snippet.ranges.map { String(snippet.text[$0]) } == ["rice", "cooker", "rice"])
    #expect(!snippet.isAtStart && !snippet.isAtEnd)
    let short = TextSnippet(of: "Ångström, né", matching: "angstrom")
    #expect(short.ranges.map { String(short.text[$0]) } == ["Ångström"])
    #expect(short.isAtStart && short.isAtEnd && short.text == "Ångström, né")
    #expect(TextSnippet(of: "", matching: "x").ranges.isEmpty)
  }

  @Test("lengths of documents are kept in a byte, about")
  func lengths() {
    for length in [0, 1, 2, 15, 16, 17, 100, 1_000, 50_000] {
      let kept = DocumentLength.length(DocumentLength.byte(length))
      #expect(abs(kept - length) <= length / 16 + 1, "\(length)")
    }
    #expect(DocumentLength.byte(.max) == 255)
  }
}
