import CAllocationCount
import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

/// Counts of calls of the disk and of allocations, which no busy machine changes: the clock stands
/// still, chance is seeded, and nothing runs beside.
@Suite("Costs of operations") struct OperationCostTests {
  private static let count = 1_000
  private let keys = (0..<count).map { Array("user/\(100_000_000_000 + $0)".utf8) }
  private let value = Array(String(repeating: "0123456789abcdefg ", count: 14).utf8)
  private let disk = CountingDisk()

  private func open(cacheBytes: Int = 32 << 20) throws -> Store {
    try Store.openBlocking(
      at: "store",
      configuration: Store.Configuration(
        cacheBytes: cacheBytes,
        environment: Store.Environment(
          fileSystem: disk, clock: ManualClock(), random: SeededRandom(seed: 2)),
        usesThreads: false))
  }

  private struct Cost: Hashable {
    var calls: Int
    var allocations: Int
  }

  /// How many calls of the disk and how many allocations of the store some work takes.
  private func cost(_ body: () throws -> Void) rethrows -> Cost {
    let (calls, ours, all) = (disk.calls, disk.allocations, allocation_count())
    try body()
    let allocations = Int(allocation_count() - all) - (disk.allocations - ours)
    return Cost(calls: disk.calls - calls, allocations: allocations)
  }

  /// Compares costs with what they may be. Allocations are counted where the C library lets it, in
  /// builds whose engine is optimized; the test is not, which takes one allocation a key that a
  /// release build does not make.
  private func expect(
    _ cost: Cost, calls: Int, allocations: Int, _ location: SourceLocation = #_sourceLocation
  ) {
    #expect(cost.calls <= calls, sourceLocation: location)
    #if TIDEMARK_OPTIMIZED
      if allocations_are_counted() {
        #expect(cost.allocations <= allocations, sourceLocation: location)
      }
    #endif
  }

  private func put(_ store: Store, durability: Durability = .buffered) throws {
    for key in keys { try store.blocking.put(key, value, durability: durability) }
  }

  private func read(_ store: Store) throws {
    for key in keys { try store.withValue(forKey: key) { (value: RawSpan) in _ = value.byteCount } }
  }

  @Test("a get of a cached value makes no system call")
  func hit() throws {
    let store = try open()
    try put(store)
    try read(store)
    try read(store)
    expect(try cost { try read(store) }, calls: 0, allocations: Self.count)
    try store.blocking.close()
  }

  @Test("gets of a store that was just opened soon read little but values from the disk")
  func cold() throws {
    var store = try open()
    let count = 100_000
    for first in stride(from: 0, to: count, by: 1_000) {
      try store.blocking.write { batch in
        for number in first..<(first + 1_000) { try batch.put("user/\(number)", value) }
      }
    }
    _ = try store.blocking.compact()
    try store.blocking.close()
    store = try open(cacheBytes: 0)
    var random = SeededGenerator(seed: 3)
    let numbers = (0..<count).shuffled(using: &random).prefix(500)
    let cost = try cost {
      for number in numbers { _ = try store.value(forKey: "user/\(number)") }
    }
    #expect(cost.calls < numbers.count * 5 / 4)
    try store.blocking.close()
  }

  @Test("a get that misses the caches makes one system call")
  func miss() throws {
    var store = try open()
    try put(store)
    try store.blocking.close()
    store = try open(cacheBytes: 0)
    // The locator and the index are read at first use.
    try read(store)
    expect(try cost { try read(store) }, calls: Self.count, allocations: 3 * Self.count)
    try store.blocking.close()
  }

  @Test("a buffered put makes one system call and asks for memory as tables grow")
  func put() throws {
    let store = try open()
    try put(store)
    // Space is set aside in steps of an eighth of what there is.
    expect(try cost { try put(store) }, calls: Self.count + 1, allocations: Self.count + 8)
    try store.blocking.close()
  }

  @Test("an async put makes no system call of its own and asks for memory as tables grow")
  func asyncPut() throws {
    let store = try open()
    try put(store, durability: .async)
    try store.blocking.flush()
    // Space is set aside once.
    let cost = try cost { try put(store, durability: .async) }
    expect(cost, calls: 1, allocations: Self.count + 60)
    try store.blocking.close()
  }

  @Test("a batch makes one system call, and asks for memory for its frame and as tables grow")
  func batch() throws {
    let store = try open()
    var batch = WriteBatch()
    func fill() throws {
      batch.removeAll()
      for key in keys { try batch.put(key, value) }
    }
    try fill()
    try store.blocking.write(batch)
    expect(try cost { try fill() }, calls: 0, allocations: Self.count)
    // Space is set aside before, now and then.
    expect(try cost { try store.blocking.write(batch) }, calls: 2, allocations: 100)
    try store.blocking.close()
  }

  @Test("a batch with a label on each put asks for memory hardly more often than one without")
  func labels() throws {
    let store = try open()
    let labels = (0..<100).map { [EntryLabel("group \($0)")] }
    var batch = WriteBatch()
    func fill() throws {
      batch.removeAll()
      for (index, key) in keys.enumerated() {
        try batch.put(key, value, labels: labels[index % 100])
      }
    }
    try fill()
    try store.blocking.write(batch)
    expect(try cost { try fill() }, calls: 0, allocations: Self.count)
    expect(try cost { try store.blocking.write(batch) }, calls: 2, allocations: 135)
    try store.blocking.close()
  }

  @Test("a batch of deletes makes one system call and asks for memory as tables grow")
  func deletes() throws {
    let store = try open()
    try put(store)
    var batch = WriteBatch()
    for key in keys { try batch.delete(key) }
    // How often tables grow depends on how keys hash in this process.
    expect(try cost { try store.blocking.write(batch) }, calls: 1, allocations: 100)
    try store.blocking.close()
  }
}
