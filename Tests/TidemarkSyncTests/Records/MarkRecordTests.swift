import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Marks of replicas")
struct MarkRecordTests {
  private func verdict(_ chance: inout SeededGenerator, _ entries: Int) -> PushVerdict {
    let place =
      chance.chance(0.5) && entries > 0
      ? MarkRecord.planned(chance.int(below: entries))
      : FeedPosition(epoch: chance.next(), offset: chance.next() >> 20)
    switch chance.int(below: 6) {
    case 0: return .duplicate(place)
    case 1: return .conflict(place)
    case 2: return .lost(place)
    case 3: return .rejected(SyncRejection(code: "c\(chance.int(below: 2))", message: "m"))
    case 4: return .aborted
    default: return .applied(place)
    }
  }

  private func placed(_ verdict: PushVerdict, own: FeedPosition, entries: Int) -> PushVerdict {
    guard let place = verdict.position, place.epoch == MarkRecord.plannedEpoch else {
      return verdict
    }
    return verdict.at(
      FeedPosition(epoch: own.epoch, offset: own.offset - UInt64(entries) + place.offset - 1))
  }

  @Test("any verdicts come back, and no bytes trap")
  func roundTrip() throws {
    for seed in UInt64(1)...400 {
      var chance = SeededGenerator(seed: seed)
      let entries = chance.int(below: 50)
      var verdicts: [PushVerdict] = []
      for _ in 0..<chance.int(below: 40) {
        let next = verdict(&chance, entries)
        for _ in 0...chance.int(below: 3) { verdicts.append(next) }
      }
      if chance.chance(0.5) {
        verdicts += (0..<entries).map { .applied(MarkRecord.planned($0)) }
      }
      let own = FeedPosition(epoch: chance.next(), offset: 1000)
      var bytes = try MarkRecord.encode(
        number: chance.next(), batchID: BatchID(chance.next()), verdicts: verdicts,
        entries: entries)
      let decoded = try MarkRecord.decode(bytes.rawSpan, at: own)
      #expect(
        decoded.verdicts == verdicts.map { placed($0, own: own, entries: entries) },
        "seed \(seed)")
      bytes[chance.int(below: bytes.count)] ^= UInt8(1 << chance.int(below: 8))
      if chance.chance(0.5) { bytes.removeLast(chance.int(below: bytes.count)) }
      _ = try? MarkRecord.decode(bytes.rawSpan, at: own)
    }
  }

  @Test("more verdicts than a record may have throw, and no record is cut off")
  func tooMany() throws {
    let verdicts = [PushVerdict](repeating: .aborted, count: WireLimits.rows + 1)
    let error = #expect(throws: TidemarkError.self) {
      try MarkRecord.encode(number: 1, batchID: BatchID(1), verdicts: verdicts, entries: 0)
    }
    #expect(error?.code == .limitExceeded)
  }

  @Test("four thousand changes that applied take a few bytes; counts that are lies are refused")
  func bounds() throws {
    let bytes = try MarkRecord.encode(
      number: 1, batchID: BatchID(1),
      verdicts: (0..<4000).map { .applied(MarkRecord.planned($0)) }, entries: 4000)
    #expect(bytes.count < 30)
    var lie = ByteWriter()
    lie.u8(2)
    lie.varint(1 as UInt64)
    lie.varint(1 as UInt64)
    lie.u64(1)
    lie.varint(UInt64.max)
    #expect(throws: FormatError.self) {
      _ = try MarkRecord.decode(lie.bytes.rawSpan, at: FeedPosition(epoch: 1, offset: 5))
    }
  }

  @Test("a place that is not in the batch is refused, and one before the feed")
  func places() throws {
    let own = FeedPosition(epoch: 1, offset: 5)
    for (entries, place) in [(3, 3), (4, 4)] as [(Int, Int)] {
      let bytes = try MarkRecord.encode(
        number: 1, batchID: BatchID(1),
        verdicts: [.duplicate(MarkRecord.planned(place - 1))], entries: entries)
      let mark = try MarkRecord.decode(bytes.rawSpan, at: own)
      let expected = FeedPosition(epoch: 1, offset: UInt64(4 - entries + place))
      #expect(mark.verdicts == [.duplicate(expected)])
    }
    for (entries, place) in [(3, 4), (0, 1), (5, 1)] as [(Int, Int)] {
      let bytes = try MarkRecord.encode(
        number: 1, batchID: BatchID(1),
        verdicts: [.duplicate(MarkRecord.planned(place - 1))], entries: entries)
      #expect(throws: FormatError.self) { _ = try MarkRecord.decode(bytes.rawSpan, at: own) }
    }
  }
}
