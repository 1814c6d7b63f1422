import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Sets of sequences")
struct SequenceSetTests {
  private func set(_ members: Set<UInt64>) -> SequenceSet {
    SequenceSet(ascending: members.sorted())
  }

  private func members(_ set: SequenceSet) -> Set<UInt64> { Set(set.ranges.flatMap { $0 }) }

  @Test("they hold what a plain set holds after the same operations")
  func likePlainSets() {
    for seed in UInt64(1)...300 {
      var chance = SeededGenerator(seed: seed)
      var plain: [Set<UInt64>] = [[], []]
      var sets = [SequenceSet(), SequenceSet()]
      for _ in 0..<chance.int(in: 0...25) {
        let which = chance.int(below: 2)
        let lower = UInt64(chance.int(in: 0...80))
        let upper = lower + UInt64(chance.int(in: 0...7))
        sets[which].insert(lower...upper)
        plain[which].formUnion(lower...upper)
      }
      let comment: Comment = "seed \(seed)"
      #expect(members(sets[0]) == plain[0], comment)
      #expect(sets[0] == set(plain[0]), comment)
      #expect(sets[0].count == UInt64(plain[0].count), comment)
      #expect(sets[0].subtracting(sets[1]) == set(plain[0].subtracting(plain[1])), comment)
      #expect(sets[0].intersection(sets[1]) == set(plain[0].intersection(plain[1])), comment)
      let difference = sets[0].symmetricDifference(sets[1])
      #expect(difference == set(plain[0].symmetricDifference(plain[1])), comment)
      #expect(difference.symmetricDifference(sets[1]) == sets[0], comment)
      var union = sets[0]
      union.formUnion(sets[1])
      #expect(union == set(plain[0].union(plain[1])), comment)
      for sequence in UInt64(0)...90 {
        #expect(sets[0].contains(sequence) == plain[0].contains(sequence), comment)
      }
      let coarse = union.coarsened(to: 3)
      #expect(coarse.ranges.count <= 3 && members(coarse).isSuperset(of: members(union)), comment)
    }
  }

  @Test("the last numbers that there are do no harm")
  func last() {
    var set = SequenceSet()
    set.insert((UInt64.max - 1)...UInt64.max)
    var other = SequenceSet()
    other.insert(UInt64.max)
    for (a, b) in [(set, other), (other, set), (set, SequenceSet()), (SequenceSet(), other)] {
      #expect(a.symmetricDifference(b).ranges.count <= 1)
    }
  }
}
