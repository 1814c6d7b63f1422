import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol

@Suite("How long messages are")
struct WireSizeTests {
  /// A batch as an application makes it: 4,000 records of about 250 bytes.
  static func batch(seed: UInt64) -> PushRequest {
    var random = SeededGenerator(seed: seed)
    let words = ["alpha", "river", "stone", "green", "seven", "cloud", "paper", "light"]
    let replica = RandomMessages.replica(&random)
    var time: UInt64 = 1_795_291_200_000 << 16
    let changes = (0..<4000).map { index -> PushedChange in
      let text = (0..<28).map { _ in random.pick(words) ?? "" }.joined(separator: " ")
      let value = #"{"id":\#(random.int(below: 1 << 30)),"done":false,"title":"\#(text)"}"#
      time += UInt64(random.int(in: 1...3))
      return PushedChange(
        sequence: UInt64(70_000 + index), kind: .put, key: Array("note/\(100_000 + index)".utf8),
        content: SyncContent(value: Array(value.utf8.prefix(250))), base: .absent,
        commitTime: time)
    }
    return PushRequest(
      replica: replica, number: 12, batchID: BatchID(random.next()), changes: changes)
  }

  @Test("a batch takes hardly more than its values compressed")
  func batch() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    let request = Self.batch(seed: seed)
    var values: [UInt8] = []
    for change in request.changes { values += change.content.value }
    var compressed: [UInt8] = []
    try ZstdCompressor(level: 1).compress(values.rawSpan, appendingTo: &compressed)
    let coder = WireCoder(limit: 2 << 20)
    let frame = try coder.encode(.pushRequest(request))
    let extra = Double(frame.count - compressed.count) / 4000
    print("batch: \(frame.count) bytes, values \(compressed.count), \(extra) more a change")
    #expect(extra < 4, "seed \(seed)")
    let plain = try WireCoder(limit: 2 << 20, codec: .none).encode(.pushRequest(request))
    #expect(Double(plain.count - values.count) / 4000 < 11, "seed \(seed)")
  }

  @Test("the verdicts of a batch that applied take a few bytes")
  func verdicts() throws {
    let verdicts = (0..<4000).map { PushVerdict.applied(FeedPosition(epoch: 5, offset: 100 + $0)) }
    let mark = ReplicaMark(number: 3, batchID: BatchID(9), verdicts: verdicts)
    let answer = PushAnswer(mark: mark, range: FeedRange(epochs: [], head: 4100))
    #expect(try WireCoder().encode(.pushAnswer(answer)).count < 60)
  }
}
