import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync

@Suite("The outbox")
struct OutboxTests {
  @Test("it does what a set of undecided changes does", arguments: 1...40 as ClosedRange<UInt64>)
  func model(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var outbox = Outbox()
    var undecided = Set(1...60 as ClosedRange<UInt64>)
    for _ in 0..<80 {
      let sequence = UInt64(random.int(below: 60)) + 1
      if random.chance(0.6) {
        outbox.decide(sequence)
        undecided.remove(sequence)
      } else if random.chance(0.5) {
        outbox.resend(sequence)
        undecided.insert(sequence)
      } else {
        let range = sequence...min(60, sequence + UInt64(random.int(below: 9)))
        outbox.remove(range)
        undecided.subtract(range)
      }
      #expect(undecided.allSatisfy { outbox.isUnsent($0) }, "seed \(seed)")
      #expect(Array(outbox.unsent(through: 60).sequences) == undecided.sorted(), "seed \(seed)")
      #expect(outbox.frontier <= 60)
    }
  }

  @Test("what lies between the frontier and a change that is decided stays pending")
  func jump() {
    var outbox = Outbox(frontier: 4, pending: SequenceSet(2...2))
    outbox.decide(9)
    #expect(outbox.frontier == 9)
    #expect(outbox.pending.ranges == [2...2, 5...8])
    outbox.advance(through: 12)
    #expect(outbox.unsent(through: 14).ranges == [2...2, 5...8, 13...14])
    outbox.removeAll()
    #expect(outbox.unsent(through: 3).ranges == [1...3])
  }
}
