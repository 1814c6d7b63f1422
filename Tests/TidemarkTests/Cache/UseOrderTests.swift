import Testing
import TidemarkEngine
import TidemarkTestKit

import Tidemark
@testable import TidemarkCaches

@Suite("The order in which a cache's entries were used")
struct UseOrderTests {
  @Test("entries that come and go are found, in the order of their last use", arguments: 1...6)
  func random(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var order = UseOrder()
    var model: [UInt64] = []
    // Consecutive sequences, and multiples whose hashes share their low or their high bits.
    let step: UInt64 = [1, 7, 1 << 20, 1 << 32, 1 << 33, 0x1_0000_0001][Int(seed) - 1]
    for turn in 0..<6_000 {
      let sequence = UInt64(generator.int(in: 1...(turn < 3_000 ? 900 : 90))) &* step
      switch generator.int(below: 4) {
      case 0, 1:
        order.add(UseOrder.Use(sequence: sequence, bytes: 2, time: 1))
        model.removeAll { $0 == sequence }
        model.append(sequence)
      case 2:
        #expect((order.remove(sequence) != nil) == model.contains(sequence), "seed \(seed)")
        model.removeAll { $0 == sequence }
      default:
        let isKnown = order.note([(sequence, 2)]) == 1
        #expect(isKnown == model.contains(sequence), "seed \(seed)")
        #expect(isKnown == (order[sequence] != nil), "seed \(seed)")
        guard isKnown else { continue }
        model.removeAll { $0 == sequence }
        model.append(sequence)
      }
    }
    var found: [UInt64] = []
    order.forEach { use in
      found.append(use.sequence)
      return true
    }
    #expect(found == model && order.count == model.count && order.bytes == 2 * model.count)
    #expect(model.allSatisfy { order[$0]?.sequence == $0 })
  }

  @Test(
    "the order of use is saved after many reads, but at most once in ten seconds",
    arguments: [false, true])
  func written(readsEntries: Bool) async throws {
    let machine = Machine()
    var store = try machine.open()
    var cache = try store.cache(prefix: "a/", policy: CachePolicy(capacity: 100))
    for number in 0..<100 { try await cache.put("k\(number)", [1]) }
    _ = try cache.entry(forKey: "k99")
    /// Uses entries, kills the process, and tells which of them counts as used last.
    func lastUsed(_ keys: [String], after seconds: Int) async throws -> String? {
      machine.clock.advance(by: .seconds(seconds))
      for key in keys {
        for _ in 0..<64 {
          if readsEntries {
            _ = try cache.entry(forKey: key)
          } else {
            _ = try cache.value(forKey: key)
          }
        }
      }
      machine.disk.kill()
      machine.disk.restart()
      store = try machine.open()
      cache = try store.cache(prefix: "a/")
      return try cache.entries().max {
        ($0.lastUse?.milliseconds ?? 0, $0.uses) < ($1.lastUse?.milliseconds ?? 0, $1.uses)
      }?.key.text
    }
    // Nothing was written yet; then the second key comes too soon.
    #expect(try await lastUsed(["k3", "k4"], after: 1) == "k3")
    #expect(try await lastUsed(["k5"], after: 60) == "k5")
    try await store.close()
  }
}
