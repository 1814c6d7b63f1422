import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections
@testable import TidemarkStore

@Suite("Live results", .timeLimit(.minutes(20)))
struct ObservationTests {
  private func opened() async throws -> (Store, ObjectCollection<Package, String>) {
    let store = try await Store.open(at: .inMemory)
    return (store, try IndexTests.packages(store))
  }

  private func package(_ id: Int, size: Int, section: String = "net") -> Package {
    Package(id: "\(id)", section: section, size: size)
  }

  @Test("an object comes at once, then with every change of it, and nothing else")
  func object() async throws {
    let (store, packages) = try await opened()
    var values = packages.values(for: "1").makeAsyncIterator()
    #expect(try await values.next() == .some(nil))
    try await packages.put(package(2, size: 1))
    try await packages.put(package(1, size: 1))
    #expect(try await values.next()??.size == 1)
    try await packages.update("1") { $0.size = 2 }
    try await packages.update("1") { $0.size = 3 }
    #expect(try await values.next()??.size == 3)
    try await packages.delete("1")
    #expect(try await values.next() == .some(nil))
    try await store.close()
    #expect(try await values.next() == nil)
  }

  @Test("a list comes whole, then with the difference by id")
  func list() async throws {
    let (store, packages) = try await opened()
    for id in 1...5 { try await packages.put(package(id, size: id * 10)) }
    var lists = packages.observe(\.section == "net", sort: [.ascending(\.size)])
      .makeAsyncIterator()
    var list = try #require(try await lists.next())
    #expect(list.ids == ["1", "2", "3", "4", "5"])
    #expect(list.changes.inserted == list.ids)
    try await packages.put(package(6, size: 25))
    list = try #require(try await lists.next())
    #expect(list.ids == ["1", "2", "6", "3", "4", "5"])
    #expect(list.changes == ObjectListChanges(inserted: ["6"]))
    try await packages.update("6") { $0.title = "x" }
    list = try #require(try await lists.next())
    #expect(list.objects[2].title == "x")
    #expect(list.changes == ObjectListChanges(updated: ["6"]))
    try await packages.update("6") { $0.size = 1 }
    list = try #require(try await lists.next())
    #expect(list.ids.first == "6")
    #expect(list.changes == ObjectListChanges(moved: ["6"]))
    try await packages.update("6") { $0.section = "text" }
    list = try #require(try await lists.next())
    #expect(list.changes == ObjectListChanges(removed: ["6"]))
    // All of a commit at once, and what does not concern the list not at all.
    try await packages.put(package(7, size: 1, section: "text"))
    try await store.write { batch in
      try batch.delete("1", in: packages)
      try batch.put(package(8, size: 99), in: packages)
    }
    list = try #require(try await lists.next())
    #expect(list.ids == ["2", "3", "4", "5", "8"])
    #expect(list.changes.removed == ["1"])
    #expect(list.changes.inserted == ["8"])
    try await store.close()
    #expect(try await lists.next() == nil)
  }

  @Test(
    "objects that are equal in the order keep theirs when an index becomes complete meanwhile",
    arguments: [true, false], [nil, 5])
  func ties(descending: Bool, limit: Int?) async throws {
    let store = try await Store.open(at: .inMemory)
    let packages = try IndexTests.packages(
      store,
      [
        ObjectIndex("size", \.size), ObjectIndex("section", \.section),
        ObjectIndex("both", .ascending(\.section), .descending(\.size)),
      ])
    let indexes = try #require(packages.core.indexes)
    let row = try #require(indexes.now.catalog.rows.firstIndex { $0.name == "both" })
    for id in 1...6 { try await packages.put(package(id, size: 7)) }
    indexes.change { $0.catalog.rows[row].isComplete = false }
    let order: [ObjectOrder<Package>] = [descending ? .descending(\.size) : .ascending(\.size)]
    var lists = packages.observe(\.section == "net", sort: order, limit: limit)
      .makeAsyncIterator()
    let before = try #require(try await lists.next()).ids
    #expect(before == (descending ? before.sorted(by: >) : before.sorted()))
    indexes.change { $0.catalog.rows[row].isComplete = true }
    let changed = before[1]
    try await packages.update(changed) { $0.title = "x" }
    var list = try #require(try await lists.next())
    #expect(list.ids == before)
    #expect(list.changes == ObjectListChanges(updated: [changed]))
    try await packages.put(package(descending ? 9 : 0, size: 7))
    list = try #require(try await lists.next())
    #expect(list.ids == Array(([descending ? "9" : "0"] + before).prefix(limit ?? .max)))
    try await packages.delete(before[2])
    list = try #require(try await lists.next())
    #expect(!list.ids.contains(before[2]) && list.changes.moved.isEmpty)
    #expect(list.ids == (descending ? list.ids.sorted(by: >) : list.ids.sorted()))
    try await store.close()
  }

  @Test("a bounded list takes up what was left out when something goes")
  func bounded() async throws {
    let (store, packages) = try await opened()
    for id in 1...9 { try await packages.put(package(id, size: id)) }
    var lists = packages.observe(sort: [.descending(\.size)], limit: 3).makeAsyncIterator()
    #expect(try await lists.next()?.ids == ["9", "8", "7"])
    try await packages.delete("8")
    var list = try #require(try await lists.next())
    #expect(list.ids == ["9", "7", "6"])
    #expect(list.changes == ObjectListChanges(inserted: ["6"], removed: ["8"]))
    try await packages.delete("1")
    try await packages.put(package(10, size: 10))
    list = try #require(try await lists.next())
    #expect(list.ids == ["10", "9", "7"])
    try await store.close()
  }

  @Test("random changes lead to the list that the query gives")
  func random() async throws {
    let seed = UInt64.random(in: 0 ... .max)
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    for limit in [nil, 4] {
      let (store, packages) = try await opened()
      let condition: ObjectCondition<Package> = \.size < 60 && \.section == "net"
      var lists = packages.observe(condition, sort: [.descending(\.size)], limit: limit)
        .makeAsyncIterator()
      var list = try #require(try await lists.next())
      for _ in 0..<300 {
        try await store.write { batch in
          for _ in 0...Int.random(in: 0...3, using: &random) {
            let id = Int.random(in: 0..<20, using: &random)
            if Int.random(in: 0..<4, using: &random) == 0 {
              try batch.delete("\(id)", in: packages)
            } else {
              try batch.put(
                package(
                  id, size: Int.random(in: 0..<80, using: &random),
                  section: ["net", "net", "text"][Int.random(in: 0..<3, using: &random)]),
                in: packages)
            }
          }
        }
        let wanted = try packages.find(condition, sort: [.descending(\.size)], limit: limit)
        if wanted != list.objects {
          let before = Set(list.ids)
          list = try #require(try await lists.next())
          #expect(list.objects == wanted)
          #expect(Set(list.changes.inserted) == Set(list.ids).subtracting(before))
          #expect(Set(list.changes.removed) == before.subtracting(list.ids))
        }
      }
      try await store.close()
    }
  }

  @Test("counts, keys and queries of the store come when they are others")
  func untyped() async throws {
    let (store, packages) = try await opened()
    var counts = packages.observeCount(where: \.section == "net").makeAsyncIterator()
    var values = store.values(forKey: "a").makeAsyncIterator()
    var entries = store.observe(EntryQuery(prefix: "k/", labels: .all("x"))).makeAsyncIterator()
    #expect(try await counts.next() == 0)
    #expect(try await values.next() == .some(nil))
    #expect(try await entries.next()?.isEmpty == true)
    try await packages.put(package(1, size: 1))
    try await packages.put(package(2, size: 1, section: "text"))
    #expect(try await counts.next() == 1)
    try await store.put("a", "1")
    try await store.put("a", "1")
    try await store.put("a", "2")
    #expect(try await values.next() == Array("2".utf8))
    try await store.put("k/1", "v", labels: ["x"])
    try await store.put("k/2", "v")
    #expect(try await entries.next()?.map(\.key) == ["k/1"])
    try await store.close()
  }

  @Test("no more than one state comes in an interval, and the newest one does")
  func interval() async throws {
    let clock = ManualClock()
    let store = try await Store.open(
      at: "/s",
      configuration: Store.Configuration().simulated(on: SimulatedFileSystem(seed: 1), clock: clock)
    )
    let packages = try store.collection(Package.self, named: "packages")
    let slept = Lock<[Duration]>([])
    var observed = packages.values(for: "1", minimumInterval: .seconds(60))
    observed.sleep = { duration in
      slept.withLock { $0.append(duration) }
      clock.advance(by: duration)
    }
    var values = observed.makeAsyncIterator()
    _ = try await values.next()
    clock.advance(by: .seconds(20))
    for size in 1...20 { try await packages.put(package(1, size: size)) }
    #expect(try await values.next()??.size == 20)
    #expect(slept.withLock { $0 } == [.seconds(40)])
    // Nobody waits for an interval that is over.
    clock.advance(by: .seconds(100))
    try await packages.put(package(1, size: 21))
    #expect(try await values.next()??.size == 21)
    #expect(slept.withLock(\.count) == 1)
    try await store.close()
  }

  @Test("an object that cannot be read ends the sequence with its error")
  func undecodable() async throws {
    let (store, packages) = try await opened()
    var values = packages.values(for: "1").makeAsyncIterator()
    _ = try await values.next()
    try await store.put("packages/1", "{")
    await #expect(throws: TidemarkError.self) { _ = try await values.next() }
    #expect(try await values.next() == nil)
    try await store.close()
  }

  @Test("a task that is cancelled ends its sequence, and nobody watches any more")
  func cancelled() async throws {
    let (store, packages) = try await opened()
    let task = Task {
      var count = 0
      for try await _ in packages.observe() { count += 1 }
      return count
    }
    try await Task.sleep(for: .milliseconds(20))
    task.cancel()
    #expect(try await task.value <= 1)
    #expect(store.hub.isIdle)
    try await store.close()
  }

  @Test("models follow the store on the main actor")
  @MainActor func models() async throws {
    let (store, packages) = try await opened()
    let model = QueryModel(packages, \.section == "net", sort: [.ascending(\.size)])
    let object = ObjectModel(packages, id: "2")
    func wait(_ holds: () -> Bool) async throws {
      while !holds() { try await Task.sleep(for: .milliseconds(1)) }
    }
    try await wait { model.isLoaded && object.isLoaded }
    #expect(model.objects.isEmpty && object.object == nil)
    try await packages.put(package(2, size: 2))
    try await packages.put(package(1, size: 1))
    try await wait { model.objects.count == 2 && object.object != nil }
    #expect(model.objects.map(\.id) == ["1", "2"])
    #expect(model.error == nil)
    try await store.close()
  }
}
