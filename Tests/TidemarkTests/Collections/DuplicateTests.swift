import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("Duplicates of unique indexes")
struct DuplicateTests {
  private func packages(_ store: Store) throws -> ObjectCollection<Package, String> {
    try IndexTests.packages(
      store,
      [
        ObjectIndex("title", unique: true, \.title), ObjectIndex("size", \.size),
        ObjectIndex("tags", unique: true, each: \.tags),
      ])
  }

  private func package(_ id: String, _ title: String, _ tags: [String] = []) -> Package {
    Package(id: id, section: "", size: 1, title: title, tags: tags)
  }

  /// Writes as a replicator does, which takes what others have written.
  private func take(_ objects: [Package], _ store: Store) throws {
    var batch = OperationBatch()
    for object in objects {
      let key = Array("packages/\(object.id)".utf8)
      let value = try JSONEncoding.encode(object)
      try batch.add(.put, key: key.rawSpan, value: value.rawSpan)
    }
    _ = try store.engine.stage(batch)
  }

  @Test("objects of one value are listed alike on replicas that took them in another order")
  func replicas() async throws {
    let mine = [package("m2", "a", ["x"]), package("m1", "b", ["y", "z"]), package("e", "c")]
    let others = [package("o1", "a", ["z"]), package("b", "a"), package("o3", "b", ["w"])]
    for (first, second) in [(mine, others), (others.reversed(), mine.reversed())] {
      let store = try await Store.open(at: .inMemory)
      let packages = try packages(store)
      try take(first, store)
      try take(second, store)
      #expect(try packages.duplicates(ofIndex: "title") == [["b", "m2", "o1"], ["m1", "o3"]])
      #expect(try packages.duplicates(ofIndex: "tags") == [["m1", "o1"]])
      #expect(try packages.find(\.title == "a").map(\.id) == ["b", "m2", "o1"])
      try await store.close()
    }
  }

  @Test("duplicates that came from elsewhere stay as they are until a program decides")
  func decided() async throws {
    let store = try await Store.open(at: .inMemory)
    let packages = try packages(store)
    try await packages.put(package("2", "a"))
    try take([package("1", "a")], store)
    #expect(try packages.duplicates(ofIndex: "title") == [["1", "2"]])
    // Another property of a duplicate can be changed, and a third object is refused.
    try await packages.update("2") { $0.size = 7 }
    await #expect(throws: TidemarkError.self) { try await packages.put(package("3", "a")) }
    for ids in try packages.duplicates(ofIndex: "title") {
      for id in ids.dropFirst() { try await packages.update(id) { $0.title += "-\(id)" } }
    }
    #expect(try packages.duplicates(ofIndex: "title").isEmpty)
    #expect(try packages.find(\.title == "a-2").map(\.id) == ["2"])
    try await store.close()
  }

  @Test("an undo that would bring a value back that another object has is refused")
  func undo() async throws {
    let store = try await Store.open(at: .inMemory)
    let packages = try packages(store)
    try await packages.put(package("1", "a"))
    let before = store.lastSequence
    try await packages.update("1") { $0.title = "b" }
    let changed = store.lastSequence
    try await packages.put(package("2", "a"))
    let error = await #expect(throws: TidemarkError.self) {
      try await store.undo(before + 1..<changed + 1)
    }
    #expect(error?.code == .notUnique)
    #expect(try packages.duplicates(ofIndex: "title").isEmpty)
    try await store.close()
  }

  @Test("a unique index that is declared over duplicates lists them, and one of another kind none")
  func declared() async throws {
    let store = try await Store.open(at: .inMemory)
    let plain = try store.collection(Package.self, named: "packages")
    for id in ["a", "a\0", "ab", "b"] { try await plain.put(package(id, "same")) }
    let packages = try packages(store)
    try await packages.indexesBuilt()
    #expect(try packages.duplicates(ofIndex: "title") == [["a", "a\0", "ab", "b"]])
    for name in ["size", "none"] {
      #expect { try packages.duplicates(ofIndex: name) } throws: {
        ($0 as? TidemarkError)?.code == .indexMissing
      }
    }
    try await store.close()
  }
}
