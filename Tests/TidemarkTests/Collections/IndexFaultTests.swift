import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("Indexes on disks with faults")
struct IndexFaultTests {
  private static let count = 200

  private func fill(_ store: Store) throws {
    var generator = SeededGenerator(seed: 1)
    let packages = try store.collection(Package.self, named: "packages")
    for start in stride(from: 0, to: Self.count, by: 50) {
      try store.blocking.write { batch in
        for number in start..<start + 50 {
          let words = (0..<90).map { _ in String(generator.next(), radix: 36) }
          try batch.put(
            Package(
              id: "\(number)", section: "s\(number % 3)", size: number,
              title: words.joined(separator: " ")),
            in: packages)
        }
      }
    }
  }

  private func indexed(_ store: Store) throws -> ObjectCollection<Package, String> {
    try IndexTests.packages(
      store, [ObjectIndex("size", \.size), ObjectIndex("title", .folded(\.title))])
  }

  private func check(_ packages: ObjectCollection<Package, String>) throws {
    #expect(try packages.core.firstDisagreement() == nil)
    #expect(try packages.count(where: \.size < 10) == 10)
    #expect(try packages.count() == Self.count)
  }

  @Test("a disk that fills up while indexes are built loses nothing, and they are built with room")
  func diskFull() async throws {
    var failed = 0
    var done = 0
    for room in stride(from: 0, through: 2 << 20, by: 512 << 10) {
      let disk = SimulatedFileSystem(seed: UInt64(room))
      let configuration = Store.Configuration().simulated(on: disk)
      var store = try Store.openBlocking(at: "/s", configuration: configuration)
      try fill(store)
      disk.capacity = disk.usedBytes + room
      do {
        try await indexed(store).indexesBuilt()
        done += 1
      } catch let error as TidemarkError {
        #expect(error.code == .noSpace, "room \(room)")
        failed += 1
      }
      let packages = try store.collection(Package.self, named: "packages")
      #expect(try packages.all().count == Self.count, "room \(room)")
      disk.capacity = nil
      let again = try indexed(store)
      try await again.indexesBuilt()
      try check(again)
      try await store.close()
      store = try Store.openBlocking(at: "/s", configuration: configuration)
      try check(try indexed(store))
      try await store.close()
    }
    #expect(failed > 0 && done > 0, "\(failed) failed, \(done) did not")
  }

  @Test("an index over objects that a damaged disk has lost says so, and the others can be used")
  func damaged() async throws {
    let disk = SimulatedFileSystem(seed: 1)
    let configuration = Store.Configuration().simulated(on: disk)
    var store = try Store.openBlocking(at: "/s", configuration: configuration)
    try fill(store)
    try await store.close()
    let file = try #require(disk.files().first { $0.contains("/log/") })
    let length = try #require(disk.contents(of: file)).count
    #expect(disk.flipBit(length / 2 * 8, inFile: file))
    store = try Store.openBlocking(at: "/s", configuration: configuration)
    let packages = try indexed(store)
    await #expect { try await packages.indexesBuilt() } throws: {
      ($0 as? TidemarkError)?.code == .damaged
    }
    #expect { try packages.find(\.size < 10) } throws: {
      ($0 as? TidemarkError)?.code == .indexMissing
    }
    var readable = 0
    for number in 0..<Self.count where (try? packages.get("\(number)")) != nil { readable += 1 }
    #expect(readable > Self.count / 2 && readable < Self.count)
    try await packages.put(Package(id: "new", section: "s", size: 1_000))
    #expect(try packages.get("new")?.size == 1_000)
    try await store.close()
  }

  @Test("the space of each index is told, also of those that this program does not declare")
  func usage() async throws {
    let disk = MemoryFileSystem()
    let configuration = Store.Configuration(on: disk)
    var store = try await Store.open(at: "/s", configuration: configuration)
    let packages = try IndexTests.packages(
      store,
      [
        ObjectIndex("size", \.size), ObjectIndex("tags", each: \.tags),
        ObjectIndex(text: "text", \.title),
      ])
    for number in 0..<100 {
      try await packages.put(
        Package(
          id: "\(number)", section: "", size: number, title: "text \(number)",
          tags: ["a", "b"].suffix(number % 3)))
    }
    try await store.close()
    store = try await Store.open(at: "/s", configuration: configuration)
    let usage = try store.indexUsage()
    #expect(usage.map(\.index) == ["size", "tags", "text"])
    #expect(usage.map(\.rows) == [100, 99, 100])
    #expect(usage.allSatisfy { $0.collection == "packages" && $0.bytes > 20 * $0.rows })
    #expect(try store.status.keys == 100)
    try await store.close()
  }
}
