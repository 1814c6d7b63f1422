import Testing
import Tidemark
import TidemarkTestKit

@testable import TidemarkEngine
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// Every change that is taken from one replica must fit into the answers to all others.
@Suite("Bounds of requests and answers")
struct BoundTests {
  private struct Row: Sendable {
    var name: String
    var verdict: String
    var edit: @Sendable (inout PushedChange) -> Void

    init(
      _ name: String, _ verdict: String, _ edit: @escaping @Sendable (inout PushedChange) -> Void
    ) {
      self.name = name
      self.verdict = verdict
      self.edit = edit
    }
  }

  private static let rows: [Row] = [
    Row("no sequence", "invalid") { $0.sequence = 0 },
    Row("greatest sequence", "applied") { $0.sequence = 1 << 48 - 1 },
    Row("sequence too great", "invalid") { $0.sequence = 1 << 48 },
    Row("sequence of 64 bits", "invalid") { $0.sequence = .max },
    Row("no key", "malformed") { $0.key = [] },
    Row("longest key", "applied") { $0.key = Array(repeating: 1, count: 65_535) },
    Row("key too long", "malformed") { $0.key = Array(repeating: 1, count: 65_536) },
    Row("most labels", "applied") { $0.content.labels = labels(64, of: 255) },
    Row("too many labels", "malformed") { $0.content.labels = labels(65, of: 3) },
    Row("label too long", "malformed") { $0.content.labels = labels(1, of: 256) },
    Row("empty label", "malformed") { $0.content.labels = [EntryLabel([])] },
    Row("longest hash", "applied") { $0.content.hash = Array(repeating: 1, count: 64) },
    Row("hash too long", "malformed") { $0.content.hash = Array(repeating: 1, count: 65) },
    Row("greatest age", "applied") { $0.content.maxAgeSeconds = .max },
    Row("earliest time", "applied") { $0.time = Timestamp(seconds: .min) },
    Row("latest time", "applied") { $0.time = Timestamp(seconds: .max, nanoseconds: .max) },
    Row("time out of bounds", "malformed") {
      $0.time = Timestamp(seconds: 0)
      $0.time?.nanoseconds = 1_000_000_000
    },
    Row("no commit time", "applied") { $0.commitTime = 0 },
    Row("latest commit time", "applied") { $0.commitTime = .max },
    Row("base beyond all", "conflict") {
      $0.base = .position(FeedPosition(epoch: .max, offset: .max))
    },
    Row("base upon the last sequence", "applied") { $0.base = .operation(sequence: .max) },
    Row("greatest group", "applied") { $0.atomicGroup = .max },
    Row("control characters", "applied") {
      $0.content.value = Array(repeating: 1, count: 1000)
      $0.key += [0, 34, 92]
    },
  ]

  private static func labels(_ count: Int, of length: Int) -> [EntryLabel] {
    (0..<count).map { EntryLabel(Array(repeating: UInt8($0 + 1), count: length)) }
  }

  @Test("a pushed change is refused, or fits into every answer, in both codings")
  func changes() throws {
    let bench = Bench()
    for (index, row) in Self.rows.enumerated() {
      var writer = Device(UInt8(index + 1))
      var change = writer.put("key \(index)", "value")
      row.edit(&change)
      #expect(try verdict(of: change, &writer, bench) == row.verdict, "\(row.name)")
      // A refused change has changed nothing.
      if row.verdict == "applied" { try expectAnswers(bench, key: change.key, row.name) }
    }
  }

  private func verdict(
    of change: PushedChange, _ writer: inout Device, _ bench: Bench
  ) throws -> String {
    let answer = try bench.handler().hello(HelloRequest(replica: writer.id))
    _ = try travelled(.helloAnswer(answer))
    writer.number = 1
    let request: WireMessage
    do throws(PeerError) { request = try travelled(.pushRequest(writer.batch([change]))) } catch {
      return error.kind.rawValue
    }
    guard
      case .pushAnswer(let answer) = try travelled(try bench.handler().answer(request))
    else { return "none" }
    return try #require(answer.mark.verdicts.first).name
  }

  /// Reads everything in every way that there is.
  private func expectAnswers(_ bench: Bench, key: [UInt8], _ name: String) throws {
    let handler = try bench.handler()
    let reader = Device(200).id
    let keys = key.isEmpty || key.count > 65_535 ? [] : [key]
    for takesBlobs in [false, true] {
      for message: WireMessage in [
        .helloRequest(HelloRequest(replica: reader)),
        .pullRequest(
          PullRequest(
            replica: reader, after: .beginning, takesBlobs: takesBlobs)),
        .pullRequest(
          PullRequest(
            replica: reader, after: .beginning, scope: SyncScope(labels: [EntryLabel([1])]),
            limits: SyncLimits(changes: .max >> 33, bytes: .max >> 33), waitMilliseconds: .max)),
        .valuesRequest(ValuesRequest(replica: reader, keys: keys, takesBlobs: takesBlobs)),
        .digestRequest(DigestRequest(replica: reader)),
      ] {
        #expect(throws: Never.self, "\(name): \(message.kind)") {
          _ = try travelled(try handler.answer(try travelled(message)))
        }
      }
    }
  }

  /// A message as it arrives, which is as it was sent.
  @discardableResult
  private func travelled(_ message: WireMessage) throws(PeerError) -> WireMessage {
    let coder = WireCoder(limit: WireFrame.largestLimit)
    let decoded = try coder.decode(try coder.encode(message))
    #expect(try coder.decodeJSON(try coder.encodeJSON(message)) == decoded)
    return decoded
  }

  @Test("an entry from before sequences were looked at stops nobody who reads beside it")
  func entriesOfEarlierVersions() throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.push(&a, a.put("before", "1"))
    try bench.withEngine { engine in
      var attributes = EntryAttributes()
      attributes.origin = EntryAttributes.Origin(replica: a.id.bytes, sequence: 1 << 48)
      var batch = OperationBatch()
      try batch.add(
        .put, key: Array("hostile".utf8).rawSpan, value: [1].rawSpan, attributes: attributes)
      try engine.commit(batch)
    }
    _ = try bench.push(&a, a.put("after", "1"))
    try expectAnswers(bench, key: Array("hostile".utf8), "as it was found")
    let page = try bench.pullAll(Device(2)).entries
    #expect(page.map(\.key) == ["before", "hostile", "after"].map { Array($0.utf8) })
    #expect(page[1].operation.sequence == page[1].position.offset, "it is the store's own")
    let place = page[1].position
    #expect(try bench.push(&a, a.put("hostile", "2", base: .position(place))) != [.aborted])
    try expectAnswers(bench, key: Array("hostile".utf8), "written anew")
  }

  @Test("a list of epochs of which the oldest have gone is no longer than an answer may have it")
  func manyEpochs() throws {
    let bench = Bench()
    var bounds = try bench.withEngine { try $0.reader.bounds() }
    bounds.epochs = (0..<Limits.epochs).map {
      Manifest.Epoch(epoch: UInt64($0 + 1), firstSequence: UInt64($0 + 2))
    }
    bounds.visible = 10_000
    let range = StoreFeed.range(bounds)
    #expect(range.epochs.first == FeedEpoch(epoch: 0, firstOffset: 1))
    #expect(range.epochs.last?.epoch == UInt64(Limits.epochs))
    #expect(range.position(ofOffset: 3) == FeedPosition(epoch: 2, offset: 3))
    try travelled(.pushAnswer(PushAnswer(mark: ReplicaMark(), range: range)))
  }
}
