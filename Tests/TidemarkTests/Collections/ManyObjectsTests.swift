import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("Many objects read together")
struct ManyObjectsTests {
  private static let count = 2_000

  /// Writes objects whose sequences are in another order than their ids.
  private func fill(
    _ store: Store, _ packages: ObjectCollection<Package, String>
  ) throws -> [Package] {
    var wanted: [Package] = []
    for start in 0..<4 {
      try store.blocking.write { batch in
        for number in stride(from: Self.count - 1 - start, through: 0, by: -4) {
          let package = Package(
            id: "p\(10_000 + number)", section: number % 5 == 0 ? "text" : "net", size: number,
            title: String(repeating: "a longer title ", count: number % 9), tags: ["all"])
          try batch.put(package, in: packages)
          if package.section == "net" { wanted.append(package) }
        }
      }
    }
    return wanted.sorted { $0.id < $1.id }
  }

  @Test("many objects come in order, from the log and from the cache", arguments: [false, true])
  func order(usesThreads: Bool) throws {
    let machine = Machine()
    var store = try machine.open(usesThreads: usesThreads)
    let wanted = try fill(store, IndexTests.packages(store))
    try store.blocking.close()
    store = try machine.open(usesThreads: usesThreads)
    let packages = try IndexTests.packages(store)
    for _ in 0..<2 {
      #expect(try packages.find(\.section == "net") == wanted)
      #expect(
        try packages.find(\.section == "net", sort: [.descending(\.size)]) == wanted.reversed())
    }
    try store.blocking.close()
  }

  @Test("an index whose file is damaged anywhere is made anew while objects are looked up in it")
  func damagedIndex() throws {
    for eighth in 1..<8 {
      let disk = SimulatedFileSystem(seed: 1)
      let configuration = Store.Configuration().simulated(on: disk)
      var store = try Store.openBlocking(at: "/s", configuration: configuration)
      let wanted = try fill(store, IndexTests.packages(store))
      try store.blocking.close()
      let file = try #require(disk.files().first { $0.contains("/index/") })
      let length = try #require(disk.contents(of: file)).count
      #expect(disk.flipBit(length / 8 * eighth * 8, inFile: file))
      store = try Store.openBlocking(at: "/s", configuration: configuration)
      #expect(try IndexTests.packages(store).find(\.section == "net") == wanted, "\(eighth)/8")
      try store.blocking.close()
    }
  }

  @Test("objects that change and go meanwhile are there as the query has found them")
  func changing() throws {
    let store = try Machine().open(usesThreads: true)
    let packages = try IndexTests.packages(store)
    let wanted = try fill(store, packages)
    let query = try ObjectQuery(packages.core, \.section == "net", [])
    let found = try query.rows.found(limit: nil, after: nil)
    try store.blocking.write { batch in
      for var package in wanted.prefix(300) {
        package.section = "games"
        try batch.put(package, in: packages)
      }
    }
    // The cache has them as they are now.
    for package in wanted.prefix(100) { #expect(try packages.get(package.id)?.section == "games") }
    var objects: [Package] = []
    try query.forEach(found, .fail) { place, box in
      #expect(found[place].id.text == box.object.id)
      objects.append(box.object)
    }
    #expect(objects == wanted)
    #expect(try packages.find(\.section == "net") == Array(wanted.dropFirst(300)))
    try store.blocking.close()
  }

  @Test("the first object that cannot be decoded is told, in the order of the result")
  func firstError() throws {
    struct Refused: Error {}
    let refused = Lock<Set<String>>([])
    let coding = CollectionCoding<String>(
      encode: { Array($0.utf8) },
      decode: { bytes in
        let text = bytes.text
        if refused.withLock({ $0.contains(text) }) { throw Refused() }
        return text
      })
    let store = try Machine().open(usesThreads: true)
    let texts = try store.collection(
      String.self, named: "texts", coding: coding,
      CollectionSchema(indexes: [ObjectIndex("length", \.utf8.count)]), id: { $0 })
    let all = (0..<Self.count).map { "t\(10_000 + $0)" }
    // The last one in order is the first in the log.
    try store.blocking.write { batch in
      for text in all.reversed() { try batch.put(text, in: texts) }
    }
    refused.withLock { $0 = [all[1_999], all[1_200], all[700]] }
    let error = #expect(throws: TidemarkError.self) { try texts.find(\.utf8.count == 6) }
    #expect(error?.code == .coding)
    #expect(error?.object?.id == all[700])
    refused.withLock { $0 = [] }
    #expect(try texts.find(\.utf8.count == 6) == all)
    try store.blocking.close()
  }

  @Test("a reader reports a key that no id is written as, and finds the other objects")
  func ids() throws {
    struct Item: Codable, Identifiable, Equatable {
      var id: Int
      var group = 1
    }
    let store = try Machine().open(usesThreads: true)
    let items = try store.collection(
      Item.self, named: "items", CollectionSchema(indexes: [ObjectIndex("group", \.group)]))
    try store.blocking.write { batch in
      for id in 100..<400 { try batch.put(Item(id: id), in: items) }
    }
    try store.blocking.put("items/0123", #"{"group":1,"id":123}"#)
    var told: [String?] = []
    let found = try items.find(\.group == 1) { told.append($0.object?.id) }
    #expect(found == (100..<400).map { Item(id: $0) })
    #expect(told == ["0123"])
    try store.blocking.close()
  }

  @Test("older versions among many objects are brought up to date")
  func versions() throws {
    struct Old: Codable, Identifiable {
      var id: Int
      var name: String
    }
    struct New: Codable, Identifiable, Equatable {
      var id: Int
      var title: String
    }
    let store = try Machine().open(usesThreads: true)
    let old = try store.collection(Old.self, named: "items")
    try store.blocking.write { batch in
      for id in 1_000..<1_600 { try batch.put(Old(id: id, name: "n\(id)"), in: old) }
    }
    let items = try store.collection(
      New.self, named: "items",
      CollectionSchema(version: 1, upcasts: [Upcast(from: 0) { $0["title"] = $0["name"] }]))
    try store.blocking.write { batch in
      for id in 1_000..<1_600 where id % 2 == 0 {
        try batch.put(New(id: id, title: "t\(id)"), in: items)
      }
    }
    #expect(
      try items.find()
        == (1_000..<1_600).map { New(id: $0, title: $0 % 2 == 0 ? "t\($0)" : "n\($0)") })
    try store.blocking.close()
  }

  @Test(
    "every part of shared work is done once, whoever else shares work", arguments: [false, true])
  func parts(usesThread: Bool) {
    let done = Lock(Array(repeating: 0, count: 8 * 100))
    SharedWork.forEach(8, usesThread: usesThread) { outer in
      SharedWork.forEach(100, usesThread: usesThread) { inner in
        done.withLock { $0[outer * 100 + inner] += 1 }
      }
    }
    #expect(done.withLock { $0.allSatisfy { $0 == 1 } })
  }

  @Test("work that was shared is let go of before its caller goes on")
  func released() {
    final class Token: Sendable {}
    for _ in 0..<200 {
      weak var kept: Token?
      do {
        let token = Token()
        kept = token
        SharedWork.forEach(4, usesThread: true) { _ in withExtendedLifetime(token) {} }
      }
      #expect(kept == nil)
    }
  }
}
