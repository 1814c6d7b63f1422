import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Directory of a packed column")
struct GroupDirectoryTests {
  @Test("bounds enclose the last group that begins below a number", arguments: 0..<20)
  func bounds(seed: UInt64) {
    var chance = SeededGenerator(seed: seed)
    var firsts: [UInt64] = []
    var next = chance.next() >> 20
    for _ in 0..<(1 + chance.int(below: 300)) {
      firsts.append(next)
      // Some stand close together, others far apart.
      next += 1 + chance.next() >> UInt64(30 + chance.int(below: 34))
    }
    let directory = GroupDirectory(firsts)
    var numbers = firsts.flatMap { [$0 - 1, $0, $0 + 1] }
    numbers += [0, next, UInt64(1) << 48 - 1, .max]
    for number in numbers {
      let below = firsts.count { $0 < number }
      guard let (low, high) = directory.bounds(below: number) else {
        #expect(below == 0, "seed \(seed), \(number)")
        continue
      }
      #expect(low < below && below <= high, "seed \(seed), \(number): \(low), \(high)")
    }
  }

  @Test("firsts of a damaged column make bounds within it", arguments: 0..<20)
  func damaged(seed: UInt64) {
    var chance = SeededGenerator(seed: seed)
    let firsts = (0..<(1 + chance.int(below: 100))).map { _ in chance.next() >> 16 }
    let directory = GroupDirectory(firsts)
    for _ in 0..<200 {
      guard let (low, high) = directory.bounds(below: chance.next()) else { continue }
      #expect(low >= 0 && low < firsts.count && high <= firsts.count, "seed \(seed)")
    }
  }
}
