import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

struct Package: Codable, Identifiable, Equatable, Sendable {
  var id: String
  var section: String
  var size: Int
  var title = ""
  var tags: [String] = []
  var isPinned = false
}

@Suite("Indexes of collections")
struct IndexTests {
  static let indexes: [ObjectIndex<Package>] = [
    ObjectIndex("section", \.section), ObjectIndex("size", \.size),
    ObjectIndex("list", .descending(\.isPinned), .folded(\.title)),
    ObjectIndex("sectionSize", .ascending(\.section), .descending(\.size)),
    ObjectIndex("tags", each: \.tags),
    ObjectIndex("initial", computed: { $0.title.isEmpty ? [] : [String($0.title.prefix(1))] }),
  ]

  static func packages(
    _ store: Store, _ indexes: [ObjectIndex<Package>] = Self.indexes
  ) throws -> ObjectCollection<Package, String> {
    try store.collection(
      Package.self, named: "packages",
      CollectionSchema(labels: { $0.tags.map { EntryLabel($0) } }, indexes: indexes))
  }

  private func filled(_ count: Int = 40) async throws -> (Store, ObjectCollection<Package, String>)
  {
    let store = try await Store.open(at: .inMemory)
    let packages = try Self.packages(store)
    try await store.write { batch in
      for number in 0..<count {
        try batch.put(
          Package(
            id: "p\(100 + number)", section: ["games", "net", "text"][number % 3],
            size: number * 37 % 100, title: "T\(number % 7)",
            tags: number % 2 == 0 ? ["even", "all"] : ["all"], isPinned: number % 5 == 0),
          in: packages)
      }
    }
    return (store, packages)
  }

  @Test("equal values, ranges, lists and prefixes are found")
  func conditions() async throws {
    let (store, packages) = try await filled()
    let all = try packages.all()
    func check(
      _ condition: ObjectCondition<Package>, _ holds: (Package) -> Bool,
      _ location: SourceLocation = #_sourceLocation
    ) throws {
      let wanted = all.filter(holds)
      #expect(try packages.find(condition) == wanted, sourceLocation: location)
      #expect(try packages.count(where: condition) == wanted.count, sourceLocation: location)
      #expect(
        try packages.find(condition, scanning: true) == wanted, sourceLocation: location)
    }
    try check(\.section == "net") { $0.section == "net" }
    try check(\.section == "none") { _ in false }
    try check(\.size < 20) { $0.size < 20 }
    try check(\.size <= 37 && \.size > 3) { $0.size <= 37 && $0.size > 3 }
    try check(\.size >= 50 && \.section == "text") { $0.size >= 50 && $0.section == "text" }
    try check(.oneOf(\.section, ["net", "games"])) { $0.section != "text" }
    try check(.hasPrefix(\.section, "g")) { $0.section == "games" }
    try check(\.section == "net" || \.size == 37) { $0.section == "net" || $0.size == 37 }
    try check(\.section == "net" && !(\.size < 50)) { $0.section == "net" && $0.size >= 50 }
    try check(\.section == "net" && \.size != 37) { $0.section == "net" && $0.size != 37 }
    try check(.contains(\.tags, "even")) { $0.tags.contains("even") }
    try check(.contains(\.tags, "even") && .contains(\.tags, "all") && \.size > 50) {
      $0.tags.contains("even") && $0.size > 50
    }
    try check(.labels(.all("even")) && \.size > 50) { $0.tags.contains("even") && $0.size > 50 }
    try check(.labels(.not("even")) && \.size > 50) { !$0.tags.contains("even") && $0.size > 50 }
    try check(.folded(\.title, equals: "t3") && \.isPinned == true) {
      $0.title == "T3" && $0.isPinned
    }
    #expect(try packages.count(where: .index("initial", equals: "T")) == 40)
    try await store.close()
  }

  @Test("results come in the order that is asked for, in pages that neither repeat nor leave out")
  func orders() async throws {
    let (store, packages) = try await filled(100)
    let all = try packages.all()
    func check(
      _ condition: ObjectCondition<Package>, _ order: [ObjectOrder<Package>],
      _ holds: (Package) -> Bool, _ precedes: (Package, Package) -> Bool,
      _ location: SourceLocation = #_sourceLocation
    ) throws {
      let found = try packages.find(condition, sort: order)
      #expect(Set(found.map(\.id)) == Set(all.filter(holds).map(\.id)), sourceLocation: location)
      for (a, b) in zip(found, found.dropFirst()) {
        #expect(!precedes(b, a), sourceLocation: location)
      }
      var paged: [Package] = []
      var page = try packages.page(condition, sort: order, limit: 7)
      while true {
        paged += page.objects
        guard let cursor = page.next else { break }
        page = try packages.page(condition, sort: order, limit: 7, after: cursor)
      }
      #expect(paged == found, sourceLocation: location)
      var scanned: [Package] = []
      page = try ObjectScan(packages, condition, order).page(limit: 7, after: nil)
      while true {
        scanned += page.objects
        guard let cursor = page.next else { break }
        page = try ObjectScan(packages, condition, order).page(limit: 7, after: cursor)
      }
      #expect(Set(scanned.map(\.id)) == Set(found.map(\.id)), sourceLocation: location)
      #expect(scanned.count == found.count, sourceLocation: location)
    }
    try check(.everything, [.ascending(\.size)], { _ in true }) { $0.size < $1.size }
    try check(.everything, [.descending(\.size)], { _ in true }) { $0.size > $1.size }
    try check(\.section == "net", [.descending(\.size)], { $0.section == "net" }) {
      $0.size > $1.size
    }
    try check(\.section == "net", [.ascending(\.size)], { $0.section == "net" }) {
      $0.size < $1.size
    }
    try check(\.size < 30, [.ascending(\.size)], { $0.size < 30 }) { $0.size < $1.size }
    try check(\.size < 30, [.ascending(\.section)], { $0.size < 30 }) { $0.section < $1.section }
    let pinned: [ObjectOrder<Package>] = [.descending(\.isPinned), .folded(\.title)]
    try check(.contains(\.tags, "even"), pinned, { $0.tags.contains("even") }) { a, b in
      a.isPinned != b.isPinned ? a.isPinned : a.title < b.title
    }
    try check(
      .everything, [.ascending(\.isPinned), .folded(\.title, descending: true)], { _ in true }
    ) { a, b in a.isPinned != b.isPinned ? b.isPinned : a.title > b.title }
    try check(.oneOf(\.size, [37, 11]), [.ascending(\.size)], { [37, 11].contains($0.size) }) {
      $0.size < $1.size
    }
    let both: [ObjectOrder<Package>] = [.ascending(\.section), .descending(\.size)]
    try check(
      \.section == "net" && \.size == 37, both, { $0.section == "net" && $0.size == 37 }
    ) { _, _ in false }
    try check(\.size > 50 && \.size < 90, both, { $0.size > 50 && $0.size < 90 }) { a, b in
      a.section != b.section ? a.section < b.section : a.size > b.size
    }
    try await store.close()
  }

  @Test("the least, the largest and all values of a property come from its index")
  func values() async throws {
    let (store, packages) = try await filled(100)
    let all = try packages.all()
    #expect(try packages.min(\.size) == all.map(\.size).min())
    #expect(
      try packages.max(\.size, where: \.section == "net")
        == all.filter { $0.section == "net" }.map(\.size).max())
    #expect(try packages.distinct(\.section) == ["games", "net", "text"])
    #expect(
      try packages.explain(\.section == "net", sort: [.descending(\.size)])
        == "reads a range of index sectionSize; in the index's order")
    try await store.close()
  }

  @Test("a query of a view finds what was there then, by a scan that is asked for")
  func views() async throws {
    let (store, packages) = try await filled()
    let games = try packages.find(\.section == "games", sort: [.descending(\.size)], limit: 5)
    let view = try store.view()
    for game in games { try await packages.update(game.id) { $0.section = "net" } }
    try await packages.delete(games[0].id)
    let before = packages.at(view)
    #expect(
      try before.find(\.section == "games", sort: [.descending(\.size)], limit: 5, scanning: true)
        == games)
    #expect(try before.find(.labels(.all("even")), scanning: true).count == 20)
    #expect { try before.find(\.section == "games") } throws: {
      ($0 as? TidemarkError)?.code == .indexMissing
    }
    try await store.close()
  }

  @Test("a query that no index serves is refused with the index to declare, or scans")
  func refused() async throws {
    let store = try await Store.open(at: .inMemory)
    let packages = try Self.packages(store, [ObjectIndex("section", \.section)])
    try await packages.put(Package(id: "1", section: "net", size: 5, title: "É"))
    let error = #expect(throws: TidemarkError.self) { try packages.find(\.size == 5) }
    #expect(error?.code == .indexMissing)
    #expect(error?.message.contains("ObjectIndex(\"…\", \\Package.size)") == true)
    #expect(try packages.find(\.size == 5, scanning: true).count == 1)
    #expect(throws: TidemarkError.self) { try packages.find(sort: [.ascending(\.size)]) }
    #expect(try packages.find(!(\.section == "net")).isEmpty)
    #expect(try packages.find(!(\.section == "net"), scanning: true).isEmpty)
    #expect(try packages.find(.folded(\.title, equals: "e"), scanning: true).count == 1)
    #expect(throws: TidemarkError.self) {
      try packages.find(.index("none", equals: 1), scanning: true)
    }
    try await store.close()
  }

  @Test("rows follow every change of an object, whoever makes it")
  func followed() async throws {
    let (store, packages) = try await filled(0)
    try await packages.put(Package(id: "1", section: "net", size: 1, tags: ["a", "b"]))
    try await packages.update("1") {
      $0.section = "text"
      $0.tags = ["b"]
    }
    #expect(try packages.count(where: \.section == "net") == 0)
    #expect(try packages.count(where: .contains(\.tags, "a")) == 0)
    #expect(try packages.ids(where: .contains(\.tags, "b")) == ["1"])
    // A writer that knows nothing of collections.
    try await store.put(
      "packages/2", #"{"id":"2","section":"net","size":2,"title":"","tags":[],"isPinned":false}"#)
    #expect(try packages.ids(where: \.section == "net") == ["2"])
    let before = store.lastSequence
    try await store.clear(prefix: "packages/")
    #expect(try packages.count(where: \.section == "net") == 0)
    try await store.undo(since: before)
    #expect(try packages.ids(where: \.size < 5) == ["1", "2"])
    let receipt = try await store.write { batch in
      try batch.delete("1", in: packages)
      try batch.put(Package(id: "3", section: "x", size: 0), in: packages)
    }
    #expect(receipt.sequences.count == 2)
    try await store.undo(receipt.sequences)
    #expect(try packages.find(\.size < 5).map(\.id) == ["1", "2"])
    try await packages.delete("1")
    try await packages.delete("2")
    #expect(try store.engine.derivedKeys(DerivedKeys.prefix + [UInt8(ascii: "i")]).isEmpty)
    #expect(try store.engine.derivedKeys(DerivedKeys.prefix + [UInt8(ascii: "r")]).isEmpty)
    try await store.close()
  }

  @Test("derived keys are in no count, scan, export or change, and cannot be written")
  func hidden() async throws {
    let (store, _) = try await filled(10)
    try await store.put("a", "1")
    try await store.put([0], "2")
    try await store.put([0x01], "3")
    #expect(try store.count() == 13)
    #expect(try store.status.keys == 13)
    var keys: [Key] = []
    var rows = try store.keys()
    while let key = try rows.next() { keys.append(key) }
    #expect(keys.count == 13)
    var descending: [Key] = []
    rows = try store.keys(descending: true)
    while let key = try rows.next() { descending.append(key) }
    #expect(descending == keys.reversed())
    var log = try store.entries(since: 0)
    var entries = 0
    while try log.next() != nil { entries += 1 }
    #expect(entries == 13)
    #expect(try store.commits().map(\.count).reduce(0, +) == 13)
    await #expect(throws: TidemarkError.self) { try await store.put("\0tidemark/#x", "1") }
    let sequences = try store.entries(order: .sequence)
    var ordered = sequences
    var count = 0
    while try ordered.next() != nil { count += 1 }
    #expect(count == 13)
    try await store.close()
  }

  @Test("a unique index refuses a second object before anything is written")
  func unique() async throws {
    let store = try await Store.open(at: .inMemory)
    let packages = try Self.packages(store, [ObjectIndex("title", unique: true, \.title)])
    try await packages.put(Package(id: "1", section: "", size: 0, title: "a"))
    let before = store.lastSequence
    let error = await #expect(throws: TidemarkError.self) {
      try await packages.put(Package(id: "2", section: "", size: 0, title: "a"))
    }
    #expect(error?.code == .notUnique)
    #expect(error?.object == ObjectPlace(collection: "packages", id: "2", path: "title"))
    #expect(store.lastSequence == before)
    await #expect(throws: TidemarkError.self) {
      try await store.write { batch in
        try batch.put(Package(id: "3", section: "", size: 0, title: "b"), in: packages)
        try batch.put(Package(id: "4", section: "", size: 0, title: "b"), in: packages)
      }
    }
    #expect(try packages.count() == 1)
    // Two objects may exchange their values, and one may take that of another that goes.
    try await packages.put(Package(id: "2", section: "", size: 0, title: "b"))
    try await store.write { batch in
      try batch.put(Package(id: "1", section: "", size: 0, title: "b"), in: packages)
      try batch.put(Package(id: "2", section: "", size: 0, title: "a"), in: packages)
    }
    try await store.write { batch in
      try batch.delete("1", in: packages)
      try batch.put(Package(id: "3", section: "", size: 0, title: "b"), in: packages)
    }
    #expect(try packages.find(\.title == "b").map(\.id) == ["3"])
    try await store.close()
  }
}
