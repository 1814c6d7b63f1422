import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("The use of a day's bytes")
struct BudgetLedgerTests {
  private static let hour: UInt64 = 3_600_000
  private static let noon: UInt64 = 1_767_268_800_000

  private func ledger(used: Int, at now: UInt64 = noon) -> BudgetLedger {
    var ledger = BudgetLedger()
    ledger.charge(used, at: now)
    return ledger
  }

  @Test("a day has 24 hours from its first byte, and the next one gives all again")
  func day() {
    var ledger = ledger(used: 60)
    #expect(ledger.remaining(of: 100) == 40)
    #expect(!ledger.renew(Self.noon + 24 * Self.hour - 1) && ledger.remaining(of: 100) == 40)
    #expect(ledger.end(Self.noon + 5) == Self.noon + 24 * Self.hour)
    #expect(ledger.renew(Self.noon + 24 * Self.hour) && ledger.remaining(of: 100) == 100)
  }

  @Test("a clock that goes back makes nobody wait for longer than a day, and gives nothing")
  func backwards() {
    var ledger = ledger(used: 100)
    let past = Self.noon - 10_000 * Self.hour
    #expect(ledger.renew(past) && ledger.remaining(of: 100) == 0)
    #expect(ledger.end(past) == past + 24 * Self.hour)
    #expect(!ledger.renew(past + 23 * Self.hour) && ledger.remaining(of: 100) == 0)
    #expect(ledger.renew(past + 24 * Self.hour) && ledger.remaining(of: 100) == 100)
  }

  @Test("a clock that goes back and forth gives a day's bytes no second time")
  func backAndForth() {
    var ledger = ledger(used: 100)
    for _ in 0..<10 {
      _ = ledger.renew(Self.noon - 10_000 * Self.hour)
      #expect(ledger.remaining(of: 100) == 0)
      _ = ledger.renew(Self.noon + Self.hour)
      #expect(ledger.remaining(of: 100) == 0)
    }
  }

  @Test("a clock that jumps to the next day and back again gives one more day's bytes at most")
  func forthAndBack() {
    var (ledger, given) = (BudgetLedger(), 0)
    for turn in 0..<20 {
      let now = Self.noon + (turn % 2 == 0 ? 0 : 25) * Self.hour
      _ = ledger.renew(now)
      let left = ledger.remaining(of: 100)
      // Sometimes nothing is used after a jump.
      if turn % 4 != 1 {
        ledger.charge(left, at: now)
        given += left
      }
    }
    #expect(given <= 200)
  }

  @Test("the ledger holds the bytes that are used, up to the share that is begun")
  func rounding() throws {
    var ledger = ledger(used: 1)
    #expect(ledger.roundedUp(3200).used == 100)
    ledger.charge(99, at: Self.noon)
    #expect(ledger.roundedUp(3200).used == 100)
    ledger.charge(1, at: Self.noon)
    #expect(ledger.roundedUp(3200).used == 200)
    #expect(ledger.roundedUp(0).used == 101)
    let saved = try ledger.encoded()
    #expect(try BudgetLedger(decoding: saved.rawSpan) == ledger)
    ledger.charge(.max, at: Self.noon)
    ledger.charge(.max, at: Self.noon)
    #expect(ledger.remaining(of: .max) == 0)
    let bytes = try ledger.encoded()
    let longer = bytes + [0]
    #expect(throws: FormatError.self) { try BudgetLedger(decoding: longer.rawSpan) }
    for length in 0..<bytes.count {
      let part = Array(bytes.prefix(length))
      #expect(throws: FormatError.self) { try BudgetLedger(decoding: part.rawSpan) }
    }
  }

  @Test(
    "the calls that are allowed follow from network, rule, rest and priority",
    arguments: NetworkCondition.allCases, [nil, 0, 5] as [Int?])
  func permits(condition: NetworkCondition, remaining: Int?) {
    let budget = SyncBudget(
      bytesPerDay: 10, urgentPriority: 3, onExpensive: .priority(atLeast: 1),
      onConstrained: .everything)
    let end = Timestamp(milliseconds: 77)
    let permit = budget.permit(on: condition, remaining: remaining, until: end)
    switch (condition, permit) {
    case (.offline, (nil, let reason)): #expect(reason == .network(.offline))
    case (.expensive, (let gate?, let reason)):
      #expect(reason == .network(.expensive))
      #expect(gate.isNarrow && gate.leastPriority == (remaining == 0 ? 3 : 1))
    case (.unrestricted, (let gate?, let reason)), (.constrained, (let gate?, let reason)):
      #expect(reason == (remaining == 0 ? .budget(until: end) : nil))
      #expect(gate.isNarrow == (remaining == 0))
      #expect(gate.leastPriority == (remaining == 0 ? 3 : nil))
      #expect(gate.bytes == (remaining == 5 ? 5 : Int.max))
    default: Issue.record("\(condition): \(permit)")
    }
  }

  @Test("a clock that goes back twice gives a day's bytes no second time")
  func backTwice() {
    var ledger = ledger(used: 100)
    for days in [10, 0, 5, 0, 2, 0] as [UInt64] {
      _ = ledger.renew(Self.noon - days * 24 * Self.hour)
      #expect(ledger.remaining(of: 100) == 0)
    }
  }

  @Test("before anything was counted a day ends a day from now")
  func unused() {
    #expect(BudgetLedger().end(Self.noon) == Self.noon + 24 * Self.hour)
  }

  @Test("a large value counts once, however often its batch goes; small ones each time")
  func largeValues() {
    func change(_ sequence: UInt64, _ bytes: Int) -> PushedChange {
      PushedChange(
        sequence: sequence, kind: .put, key: [1],
        content: SyncContent(value: [UInt8](repeating: 0, count: bytes)), commitTime: 1)
    }
    let call = WireMessage.pushRequest(
      PushRequest(
        replica: .none, number: 1, batchID: BatchID(7),
        changes: [change(1, 300_000), change(2, 10)]
      ))
    #expect(call.sentBytes(after: nil) == 300_000 + 10 + 2 * 65)
    #expect(call.sentBytes(after: BatchID(6)) == 300_000 + 10 + 2 * 65)
    #expect(call.sentBytes(after: BatchID(7)) == 10 + 65 + 1)
  }
}
