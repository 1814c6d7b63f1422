import Testing
import TidemarkTestKit

import Tidemark
@testable import TidemarkStore
@testable import TidemarkEngine

/// Scans by key of data that was written in any order, with caches that hold hardly any of it.
@Suite("Scans of what lies apart")
struct GatheredScanTests {
  private static let count = 12_000

  private func open(_ disk: any FileSystem) throws -> Store {
    let configuration = Store.Configuration(
      cacheBytes: 64 << 10,
      environment: Store.Environment(
        fileSystem: disk, clock: ManualClock(), random: SeededRandom(seed: 8)),
      usesThreads: false)
    return try Store.openBlocking(at: "/store", configuration: configuration)
  }

  private static func key(_ number: Int) -> Key { Key("key/\(100_000 + number)") }

  /// A value that no other key has, and that cannot be compressed to nothing.
  private static func value(_ number: Int, _ version: Int = 0) -> [UInt8] {
    var random = SeededGenerator(seed: UInt64(number * 10 + version))
    // A few are larger than what is gathered together.
    let length = number == 5_000 ? 3 << 20 : number % 97 == 0 ? 0 : 100 + number % 150
    return (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }

  private func fill(_ store: Store, _ numbers: [Int], version: Int = 0) throws {
    var random = SeededGenerator(seed: 5)
    let order = numbers.shuffled(using: &random)
    for first in stride(from: 0, to: order.count, by: 500) {
      try store.blocking.write { batch in
        for number in order[first...].prefix(500) {
          let label = EntryLabel("l\(number % 2)")
          try batch.put(Self.key(number), Self.value(number, version), labels: [label])
        }
      }
    }
  }

  /// Scans and checks each row.
  private func check(
    _ reader: some StoreReader, _ query: EntryQuery, _ expected: [Int], version: (Int) -> Int
  ) throws {
    var next = 0
    try reader.scan(query) { (key, value) throws in
      let number = expected[next]
      let isRight =
        [UInt8](copying: key) == Self.key(number).bytes
        && [UInt8](copying: value) == Self.value(number, version(number))
      try #require(isRight, "row \(next)")
      next += 1
    }
    #expect(next == expected.count)
  }

  @Test("every row comes in its order with its value: newest, of the past, compacted, with a limit")
  func all() throws {
    let store = try open(SimulatedFileSystem(seed: 3))
    let numbers = Array(0..<Self.count)
    try fill(store, numbers)
    let then = try store.view()
    let third = numbers.filter { $0.isMultiple(of: 3) }
    try fill(store, third, version: 1)
    for number in [0, 1, 4_000] { _ = try store.blocking.touch(Self.key(number)) }
    let version = { (number: Int) in number.isMultiple(of: 3) ? 1 : 0 }
    for isCompacted in [false, true] {
      if isCompacted {
        try store.blocking.compact()
        try fill(store, third, version: 1)
      }
      try check(store, EntryQuery(), numbers, version: version)
      try check(then, EntryQuery(), numbers) { _ in 0 }
      let last = Array(numbers.suffix(7_000).reversed())
      try check(store, EntryQuery(descending: true, limit: 7_000), last, version: version)
      let odd = numbers.filter { !$0.isMultiple(of: 2) }
      try check(store, EntryQuery(labels: .all("l1")), odd, version: version)
    }
    try store.blocking.close()
  }

  @Test("each block is read about once for many rows, not once a row")
  func cost() throws {
    let disk = CountingDisk()
    let store = try open(disk)
    try fill(store, Array(0..<Self.count))
    var rows = 0
    let before = disk.calls
    try store.scan { _, _ in rows += 1 }
    #expect(rows == Self.count)
    #expect(disk.calls - before < Self.count / 2)
    try store.blocking.close()
  }

  @Test("values that are too large to wait are not read twice")
  func large() throws {
    let disk = CountingDisk()
    let store = try open(disk)
    try fill(store, Array(0..<4_000))
    let large = [UInt8](repeating: 7, count: 1_200 << 10)
    for number in 0..<40 { try store.blocking.put("large/\(number)", large + [UInt8(number)]) }
    func calls(_ body: () throws -> Void) rethrows -> Int {
      let before = disk.calls
      try body()
      return disk.calls - before
    }
    let one = try calls { _ = try store.value(forKey: "large/20") }
    let small = try calls { try store.scan(EntryQuery(prefix: "key/")) { _, _ in } }
    var bytes = 0
    let all = try calls { try store.scan { _, value in bytes += value.byteCount } }
    #expect(bytes > 40 * large.count)
    #expect(all - small < 60 * one, "\(all), \(small), \(one)")
    try store.blocking.close()
  }

  @Test("rows before damage come, and the scan ends with an error at the row that is damaged")
  func damage() throws {
    let disk = SimulatedFileSystem(seed: 3)
    var store = try open(disk)
    // The damage lies where rows are gathered: behind the first pages.
    try fill(store, Array(5_001..<9_000))
    try fill(store, Array(9_000..<Self.count))
    try store.blocking.close()
    let file = try #require(disk.files().first { $0.contains("/log/") })
    let length = try #require(disk.contents(of: file)).count
    #expect(disk.flipBit(length / 4 * 3 * 8, inFile: file))
    store = try open(disk)
    let first = try #require(
      (5_001..<Self.count).first { number in
        code { _ = try store.value(forKey: Self.key(number)) } != nil
      })
    var rows = 0
    let found = code { try store.scan { (_, _) throws in rows += 1 } }
    #expect(found == .damaged)
    #expect(rows == first - 5_001)
    #expect(rows >= 3_999)
    try store.blocking.close()
  }

  @Test("a scan hands nothing out once the store is closed, and ends where its caller ends it")
  func ends() throws {
    struct Enough: Error {}
    let store = try open(SimulatedFileSystem(seed: 3))
    try fill(store, Array(0..<Self.count))
    var rows = 0
    #expect(throws: Enough.self) {
      try store.scan { (_, _) throws in
        rows += 1
        if rows == 3_000 { throw Enough() }
      }
    }
    #expect(rows == 3_000)
    let found = code {
      try store.scan { (_, _) throws in
        rows += 1
        if rows == 7_000 { try store.blocking.close() }
      }
    }
    #expect(found == .closed)
    #expect(rows == 7_000)
  }
}
