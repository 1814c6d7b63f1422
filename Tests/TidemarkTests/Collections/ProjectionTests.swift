import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("Projections", .timeLimit(.minutes(20)))
struct ProjectionTests {
  struct Totals: Codable, Equatable, Sendable {
    var sum = 0
    var count = 0
    var deletes = 0
  }

  @Sendable static func add(_ totals: inout Totals, _ entry: Entry) throws {
    totals.count += 1
    if entry.kind == .delete { totals.deletes += 1 }
    totals.sum += Int(String(decoding: entry.value, as: UTF8.self)) ?? 0
  }

  @Test("a projection has every change once, and goes on where it was")
  func once() async throws {
    let disk = MemoryFileSystem()
    let configuration = Store.Configuration(on: disk)
    var store = try await Store.open(at: "/s", configuration: configuration)
    for number in 1...10 { try await store.put("p/\(number)", "\(number)") }
    var totals = try store.projection(
      named: "totals", initial: Totals(), prefix: "p/", Self.add)
    #expect(try await totals.caughtUp() == Totals(sum: 55, count: 10))
    try await store.put("p/1", "5")
    try await store.put("other", "100")
    try await store.delete("p/2")
    #expect(try await totals.caughtUp() == Totals(sum: 60, count: 12, deletes: 1))
    try await store.close()
    store = try await Store.open(at: "/s", configuration: configuration)
    let calls = Lock(0)
    totals = try store.projection(named: "totals", initial: Totals(), prefix: "p/") {
      calls.withLock { $0 += 1 }
      try Self.add(&$0, $1)
    }
    #expect(try await totals.caughtUp() == Totals(sum: 60, count: 12, deletes: 1))
    #expect(calls.withLock { $0 } <= 12)
    try await store.close()
  }

  @Test("another version begins anew with all that the store has")
  func versions() async throws {
    let store = try await Store.open(at: .inMemory)
    for number in 1...10 { try await store.put("\(number)", "\(number)") }
    let first = try store.projection(named: "totals", initial: Totals(), Self.add)
    #expect(try await first.caughtUp().sum == 55)
    first.stop()
    let second = try store.projection(named: "totals", version: 2, initial: 0) { sum, entry in
      sum += 2 * (Int(String(decoding: entry.value, as: UTF8.self)) ?? 0)
    }
    #expect(try await second.caughtUp() == 110)
    try await store.close()
  }

  @Test("compaction keeps what a projection has yet to read, and forgets with it")
  func pins() async throws {
    let disk = MemoryFileSystem()
    let configuration = Store.Configuration(on: disk)
    var store = try await Store.open(at: "/s", configuration: configuration)
    let totals = try store.projection(named: "totals", initial: Totals(), Self.add)
    try await totals.caughtUp()
    totals.stop()
    for round in 1...3 {
      for number in 1...20 { try await store.put("\(number)", "\(round)") }
    }
    try await store.delete("1")
    try await store.close()
    // Another program compacts, and knows nothing of the projection.
    store = try await Store.open(at: "/s", configuration: configuration)
    _ = try await store.compact(dropHistory: true)
    #expect(try store.knownProjections().map(\.name) == ["totals"])
    let again = try store.projection(named: "totals", initial: Totals(), Self.add)
    #expect(try await again.caughtUp() == Totals(sum: 120, count: 61, deletes: 1))
    again.stop()
    #expect(try store.forgetProjection(named: "totals"))
    #expect(try store.forgetProjection(named: "totals") == false)
    _ = try await store.compact(dropHistory: true)
    #expect(try store.history(ofKey: "2").count == 1)
    try await store.close()
  }

  @Test("a closure that throws stops the projection, and says why")
  func throwing() async throws {
    struct Own: Error {}
    let store = try await Store.open(at: .inMemory)
    let projection = try store.projection(named: "p", initial: 0) { _, entry in
      if entry.value.isEmpty { throw Own() }
    }
    try await store.put("a", "1")
    try await projection.caughtUp()
    try await store.put("b", "")
    await #expect(throws: TidemarkError.self) { try await projection.caughtUp() }
    #expect((projection.failure as? TidemarkError)?.cause is Own)
    try await store.close()
  }

  @Test("the state is live")
  func live() async throws {
    let store = try await Store.open(at: .inMemory)
    let totals = try store.projection(named: "totals", initial: Totals(), Self.add)
    var values = totals.values().makeAsyncIterator()
    var last = try #require(try await values.next())
    try await store.put("a", "7")
    while last.sum != 7 { last = try #require(try await values.next()) }
    try await store.close()
    while try await values.next() != nil {}
  }

  @Test("a state and how far it has come are never apart, wherever a crash comes", arguments: 1...6)
  func crashes(seed: Int) throws {
    let disk = SimulatedFileSystem(seed: UInt64(seed))
    disk.keepsCrashPoints = true
    var generator = SeededGenerator(seed: UInt64(seed))
    func open(_ disk: SimulatedFileSystem) throws -> (Store, Projection<[String: Int]>) {
      let store = try Store.openBlocking(
        at: "/s", configuration: Store.Configuration().simulated(on: disk))
      let projection = try store.projection(named: "p", initial: [String: Int]()) { state, entry in
        state[entry.key.text, default: 0] += entry.kind == .delete ? 1_000 : entry.valueLength
      }
      return (store, projection)
    }
    /// The same by the log itself.
    func expected(_ store: Store) throws -> [String: Int] {
      var state: [String: Int] = [:]
      var log = try store.entries(since: nil)
      while let entry = try log.next() {
        state[entry.key.text, default: 0] += entry.kind == .delete ? 1_000 : entry.valueLength
      }
      return state
    }
    let (store, projection) = try open(disk)
    for _ in 0..<20 {
      for _ in 0..<3 {
        let key = "\(generator.int(in: 0...5))"
        if generator.chance(0.3) {
          _ = try store.blocking.delete(key)
        } else {
          try store.blocking.put(key, String(repeating: "x", count: generator.int(in: 0...9)))
        }
      }
      while try projection.step() {}
      if generator.chance(0.5) { try projection.writeCheckpoint() }
      #expect(try projection.state == expected(store))
      for point in disk.takeCrashPoints() where generator.chance(0.2) {
        let survivals: [Survival?] = [nil, .random(seed: generator.next()), .keepOldest]
        for survival in survivals {
          let crashed =
            survival.map { SimulatedFileSystem(point, keeping: $0, seed: generator.next()) }
            ?? SimulatedFileSystem(killedAt: point, seed: generator.next())
          let (store, projection) = try open(crashed)
          while try projection.step() {}
          #expect(try projection.state == expected(store), "seed \(seed)")
          try store.blocking.close()
        }
      }
    }
    try store.blocking.close()
  }

  @Test("changes that were read before an error are read again")
  func interrupted() throws {
    var configuration = Store.Configuration()
    configuration.usesThreads = false
    let store = try Store.openBlocking(at: .inMemory, configuration: configuration)
    for number in 1...50 { try store.blocking.put("\(number)", "\(number)") }
    struct Once: Error {}
    let isFirst = Lock(true)
    let totals = try store.projection(named: "totals", initial: Totals()) { totals, entry in
      if entry.sequence == 30, isFirst.withLock({ $0 }) {
        isFirst.withLock { $0 = false }
        throw Once()
      }
      try Self.add(&totals, entry)
    }
    #expect(throws: TidemarkError.self) { try totals.step() }
    while try totals.step() {}
    #expect(totals.state == Totals(sum: 1275, count: 50))
    try store.blocking.close()
  }

  @Test(
    "a projection of a quiet prefix holds nothing back, and one that is replaced writes no more")
  func quiet() throws {
    var configuration = Store.Configuration()
    configuration.usesThreads = false
    let store = try Store.openBlocking(at: .inMemory, configuration: configuration)
    let first = try store.projection(named: "p", initial: 0, prefix: "none/") { sum, _ in sum += 1 }
    for number in 1...10_100 { try store.blocking.put("\(number)", "") }
    while try first.step() {}
    #expect(try store.knownProjections().first?.sequence ?? 0 >= 10_000)
    let second = try store.projection(named: "p", version: 2, initial: 0) { sum, _ in sum += 1 }
    try store.blocking.put("none/1", "")
    try first.writeCheckpoint()
    while try second.step() {}
    #expect(second.state == 10_101)
    #expect(try store.forgetProjection(named: "p"))
    try second.writeCheckpoint()
    #expect(try store.knownProjections().isEmpty)
    try store.blocking.close()
  }
}
