import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("Indexes are built")
struct IndexBuildTests {
  private func plain(_ store: Store) throws -> ObjectCollection<Package, String> {
    try store.collection(Package.self, named: "packages")
  }

  private func package(_ number: Int, size: Int? = nil) -> Package {
    Package(id: "\(number)", section: "s\(number % 3)", size: size ?? number)
  }

  private func fill(_ store: Store, _ numbers: Range<Int>) async throws {
    let packages = try plain(store)
    try await store.write { batch in
      for number in numbers { try batch.put(package(number), in: packages) }
    }
  }

  @Test("an index that is declared over objects is built beside writers, and used once complete")
  func built() async throws {
    let store = try await Store.open(at: .inMemory)
    try await fill(store, 0..<3_000)
    let packages = try IndexTests.packages(store, [ObjectIndex("size", \.size)])
    // Writers go on meanwhile.
    for number in 0..<50 { try await packages.put(package(number * 7, size: -1)) }
    try await packages.indexesBuilt()
    #expect(try packages.count(where: \.size == -1) == 50)
    #expect(try packages.count(where: \.size >= 0) == 2_950)
    #expect(try packages.indexes.map(\.isComplete) == [true])
    try await store.close()
  }

  @Test("an index that is being built is not used, and says so")
  func unfinished() async throws {
    let store = try await Store.open(at: .inMemory)
    try await fill(store, 0..<3_000)
    let packages = try IndexTests.packages(store, [ObjectIndex("size", \.size)])
    do {
      #expect(try packages.count(where: \.size >= 0) == 3_000)
    } catch {
      #expect(error.code == .indexMissing)
      #expect(error.message.contains("being built"))
    }
    try await packages.indexesBuilt()
    #expect(try packages.count(where: \.size >= 0) == 3_000)
    try await store.close()
  }

  @Test("indexes are there at once when the store is opened again")
  func reopened() async throws {
    let disk = MemoryFileSystem()
    let configuration = Store.Configuration(on: disk)
    var store = try await Store.open(at: "/s", configuration: configuration)
    let packages = try IndexTests.packages(store, [ObjectIndex("size", \.size)])
    for number in 0..<100 { try await packages.put(package(number)) }
    try await store.close()
    store = try await Store.open(at: "/s", configuration: configuration)
    let again = try IndexTests.packages(store, [ObjectIndex("size", \.size)])
    #expect(try again.find(\.size < 3).map(\.id) == ["0", "1", "2"])
    #expect(try again.indexes.map(\.isComplete) == [true])
    try await store.close()
  }

  @Test("objects that a program without the indexes writes are taken up when they are declared")
  func marked() async throws {
    let disk = MemoryFileSystem()
    let configuration = Store.Configuration(on: disk)
    var store = try await Store.open(at: "/s", configuration: configuration)
    var packages = try IndexTests.packages(store, [ObjectIndex("size", \.size)])
    for number in 0..<10 { try await packages.put(package(number)) }
    try await store.close()
    store = try await Store.open(at: "/s", configuration: configuration)
    packages = try plain(store)
    try await packages.put(package(3, size: 100))
    try await packages.delete("4")
    try await packages.put(package(11, size: 100))
    try await store.put("packages/12", "no package")
    try await store.close()
    store = try await Store.open(at: "/s", configuration: configuration)
    packages = try IndexTests.packages(store, [ObjectIndex("size", \.size)])
    try await packages.indexesBuilt()
    #expect(try packages.ids(where: \.size == 100) { _ in } == ["11", "3"])
    #expect(try packages.count(where: \.size >= 0) { _ in } == 10)
    #expect(try packages.unindexed() == ["12"])
    try await packages.put(package(12, size: 7))
    #expect(try packages.ids(where: \.size == 7) == ["12", "7"])
    #expect(try packages.unindexed().isEmpty)
    try await store.close()
  }

  @Test("a new version of an index, and one that is gone, leave no rows behind")
  func changed() async throws {
    let store = try await Store.open(at: .inMemory)
    let first = try IndexTests.packages(
      store, [ObjectIndex("half", computed: { [$0.size / 2] }), ObjectIndex("size", \.size)])
    for number in 0..<20 { try await first.put(package(number)) }
    #expect(try first.count(where: .index("half", equals: 3)) == 2)
    let second = try IndexTests.packages(
      store, [ObjectIndex("half", version: 2, computed: { [$0.size / 4] })])
    try await second.indexesBuilt()
    #expect(try second.count(where: .index("half", equals: 3)) == 4)
    #expect(try store.engine.derivedKeys(DerivedKeys.prefix + [UInt8(ascii: "i")]).count == 20)
    #expect(throws: TidemarkError.self) { try second.find(\.size == 1) }
    // Numbers of indexes that are gone are given to none.
    let third = try IndexTests.packages(store, [ObjectIndex("size", \.size)])
    try await third.indexesBuilt()
    #expect(try third.find(\.size == 19).count == 1)
    #expect(try store.engine.derivedKeys(DerivedKeys.prefix + [UInt8(ascii: "i")]).count == 20)
    try await store.close()
  }

  @Test("a closure that throws is an error of the write, and an object of a peer's is marked")
  func throwing() async throws {
    struct TooBig: Error {}
    let store = try await Store.open(at: .inMemory)
    let packages = try IndexTests.packages(
      store,
      [
        ObjectIndex(
          "odd",
          computed: { package in
            if package.size > 10 { throw TooBig() }
            return [package.size]
          })
      ])
    let error = await #expect(throws: TidemarkError.self) { try await packages.put(package(11)) }
    #expect(error?.code == .coding)
    #expect(error?.object?.id == "11")
    #expect(try packages.count() == 0)
    try await store.put(
      "packages/12", try JSONEncoding.encode(package(12)))
    #expect(try packages.unindexed() == ["12"])
    #expect(try packages.get("12")?.size == 12)
    let long = try store.collection(
      Package.self, named: "long", CollectionSchema(indexes: [ObjectIndex("title", \.title)]))
    var big = package(1)
    big.title = String(repeating: "x", count: 5_000)
    let tooLong = await #expect(throws: TidemarkError.self) { try await long.put(big) }
    #expect(tooLong?.code == .limitExceeded)
    try await store.close()
  }

  @Test("a store that was suspended finds the indexes that another process has declared meanwhile")
  func suspended() async throws {
    let disk = MemoryFileSystem()
    let configuration = Store.Configuration(on: disk)
    let first = try await Store.open(at: "/s", configuration: configuration)
    let before = try IndexTests.packages(first, [ObjectIndex("size", \.size)])
    try await before.put(package(1))
    try await first.suspend()
    let second = try await Store.open(at: "/s", configuration: configuration)
    let between = try IndexTests.packages(second, [ObjectIndex("section", \.section)])
    try await between.indexesBuilt()
    try await between.put(package(2))
    try await second.close()
    try await first.resume()
    // The declaration of before does not hold any more: the object is marked.
    try await before.put(package(3))
    #expect(throws: TidemarkError.self) { try before.find(\.size == 3) }
    let again = try IndexTests.packages(first, [ObjectIndex("size", \.size)])
    try await again.indexesBuilt()
    #expect(try again.find(\.size > 0).map(\.id) == ["1", "2", "3"])
    #expect(try again.core.firstDisagreement() == nil)
    try await first.close()
  }

  @Test("a reader beside a writer uses its indexes, and follows when they change")
  func reader() async throws {
    let disk = MemoryFileSystem()
    var configuration = Store.Configuration(on: disk)
    let writer = try await Store.open(at: "/s", configuration: configuration)
    let written = try IndexTests.packages(writer, [ObjectIndex("size", \.size)])
    try await written.put(package(1))
    try await writer.flush()
    configuration.access = .readOnly
    let reader = try await Store.open(at: "/s", configuration: configuration)
    let read = try IndexTests.packages(reader, [ObjectIndex("size", \.size)])
    #expect(try read.find(\.size == 1).map(\.id) == ["1"])
    try await written.put(package(2))
    try await writer.flush()
    try await reader.refresh()
    #expect(try read.find(\.size >= 1).map(\.id) == ["1", "2"])
    #expect(throws: TidemarkError.self) {
      try IndexTests.packages(reader, [ObjectIndex("section", \.section)]).find(\.section == "s1")
    }
    try await reader.close()
    try await writer.close()
  }

  @Test("two parts of a program that declare other indexes write no term under another's number")
  func twoDeclarations() async throws {
    let store = try await Store.open(at: .inMemory)
    let first = try IndexTests.packages(
      store, [ObjectIndex("size", \.size), ObjectIndex("section", \.section)])
    let second = try IndexTests.packages(
      store, [ObjectIndex("section", \.section), ObjectIndex("size", \.size)])
    try await first.put(package(1))
    try await second.put(package(2))
    #expect(try second.find(\.size >= 1).map(\.id) == ["1", "2"])
    #expect(try first.find(\.section == "s1").map(\.id) == ["1"])
    #expect(try second.core.firstDisagreement() == nil)
    try await store.close()
  }

  @Test("collections whose names begin alike have rows of their own objects only")
  func names() async throws {
    let store = try await Store.open(at: .inMemory)
    let names = ["b", "a", "a b", "a.b", "ab", "a-", "\u{1}"]
    let all = try names.map { name in
      try store.collection(
        Package.self, named: name, CollectionSchema(indexes: [ObjectIndex("size", \.size)]))
    }
    for (number, packages) in all.enumerated() {
      try await packages.put(package(number))
      try await packages.put(package(100, size: number))
    }
    try await store.put("a", "of no collection")
    try await store.put("a0/1", "nor this")
    for (number, packages) in all.enumerated() {
      #expect(try packages.ids(where: \.size == number) == ["\(number)", "100"].sorted())
      #expect(try packages.count(where: \.size >= 0) == 2)
      #expect(try packages.core.firstDisagreement() == nil)
    }
    try await store.close()
  }

  @Test("an eviction that does nothing leaves an object's rows alone")
  func evictions() async throws {
    let store = try await Store.open(at: .inMemory)
    let packages = try IndexTests.packages(store, [ObjectIndex("size", \.size)])
    try await packages.put(package(1))
    var batch = OperationBatch()
    try batch.addEviction(of: Array("packages/1".utf8).rawSpan, at: 0)
    _ = try store.engine.stage(batch)
    #expect(try packages.find(\.size == 1).map(\.id) == ["1"])
    #expect(try packages.core.firstDisagreement() == nil)
    try await store.close()
  }

  @Test("declarations beside writers leave no object without its rows", arguments: 0..<8)
  func declaredBeside(round: Int) async throws {
    let store = try await Store.open(at: .inMemory)
    let plain = try plain(store)
    try await fill(store, 0..<50)
    try await withThrowingTaskGroup { group in
      for writer in 0..<3 {
        group.addTask {
          for number in 0..<100 {
            try await plain.put(self.package(writer * 1_000 + number, size: number))
          }
        }
      }
      group.addTask {
        for version in 1...4 {
          let packages = try IndexTests.packages(
            store, [ObjectIndex("size", version: UInt32(version), \.size)])
          try await packages.indexesBuilt()
        }
      }
      try await group.waitForAll()
    }
    let packages = try IndexTests.packages(store, [ObjectIndex("size", version: 4, \.size)])
    try await packages.indexesBuilt()
    #expect(try packages.core.firstDisagreement() == nil, "round \(round)")
    #expect(try packages.count(where: \.size >= 0) == 300)
    try await store.close()
  }
}
