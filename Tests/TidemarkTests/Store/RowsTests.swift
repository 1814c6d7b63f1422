import Testing
import TidemarkTestKit

import Tidemark
@testable import TidemarkStore
@testable import TidemarkEngine

@Suite("Walking over entries")
struct RowsTests {
  private let disk = SimulatedFileSystem(seed: 3)

  private func open() throws -> Store {
    let configuration = Store.Configuration(cacheBytes: 64 << 10).simulated(
      on: disk, clock: ManualClock(), random: SeededRandom(seed: 8))
    return try Store.openBlocking(at: "/store", configuration: configuration)
  }

  private static func value(_ number: Int) -> [UInt8] {
    // Some are so large that few of them are held at once.
    let length = number % 400 == 7 ? 2 << 20 : number % 300
    return [UInt8](repeating: UInt8(number & 0xff), count: length)
  }

  /// A store whose keys were written in any order, in several batches.
  private func filled(_ store: Store, seed: UInt64) throws -> Int {
    var random = SeededGenerator(seed: seed)
    let count = 3_000
    let order = Array(0..<count).shuffled(using: &random)
    for first in stride(from: 0, to: count, by: 300) {
      var batch = WriteBatch()
      for number in order[first..<(first + 300)] {
        try batch.put(
          "key/\(10_000 + number)", Self.value(number), labels: [EntryLabel("l\(number % 3)")])
      }
      try store.blocking.write(batch)
      _ = try store.blocking.touch("key/\(10_000 + order[first])")
    }
    return count
  }

  @Test("each entry comes in its order with its value, however many are taken")
  func all() throws {
    let store = try open()
    let count = try filled(store, seed: 4)
    for isCompacted in [false, true] {
      if isCompacted { try store.blocking.compact(dropHistory: true) }
      for limit in [nil, 1, 20, 1_024, 2_500] {
        for descending in [false, true] {
          var rows = try store.entries(EntryQuery(descending: descending, limit: limit))
          var taken = 0
          while let entry = try rows.next() {
            let number = descending ? count - 1 - taken : taken
            let isRight =
              entry.key.text == "key/\(10_000 + number)" && entry.value == Self.value(number)
              && entry.valueLength == entry.value.count
              && entry.labels == [EntryLabel("l\(number % 3)")]
            try #require(isRight, "row \(taken)")
            taken += 1
          }
          #expect(taken == limit ?? count)
        }
      }
      var rows = try store.entries(labels: .all("l1"))
      var taken = 0
      while let entry = try rows.next() {
        let single = try store.entry(forKey: entry.key)
        #expect(single?.sequence == entry.sequence && single?.value == entry.value)
        taken += 1
      }
      #expect(taken == count / 3)
    }
    try store.blocking.close()
  }

  @Test("entries that cannot be read say so, each by itself, and all others come")
  func damaged() throws {
    var store = try open()
    let count = try filled(store, seed: 5)
    try store.blocking.close()
    let file = try #require(disk.files().first { $0.contains("/log/") })
    let length = try #require(disk.contents(of: file)).count
    #expect(disk.flipBit(length / 2 * 8, inFile: file))
    store = try open()
    var (read, failed) = (0, 0)
    for values in [true, false] {
      (read, failed) = (0, 0)
      var rows = try store.entries(EntryQuery(values: values))
      while true {
        do {
          guard try rows.next() != nil else { break }
          read += 1
        } catch {
          #expect(error.code == .damaged)
          failed += 1
        }
      }
      #expect(read + failed == count, "\(read) and \(failed)")
      if values { #expect(failed > 0) }
    }
    try store.blocking.close()
  }
}
