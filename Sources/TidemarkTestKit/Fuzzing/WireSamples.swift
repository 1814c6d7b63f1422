internal import Tidemark
internal import TidemarkEngine
package import TidemarkSyncProtocol

/// One message of every kind, with something of everything that it can hold; two of those that
/// have two shapes, or are another for clients that only push. Their bytes are kept in tests, so
/// they must stay as they are.
package enum WireSamples {
  package static let messages: [(name: String, message: WireMessage)] = [
    ("hello", .helloRequest(hello)), ("hello-push_only", .helloRequest(helloToPush)),
    ("hello_answer", .helloAnswer(helloAnswer)),
    ("push", .pushRequest(push)),
    ("push_answer", .pushAnswer(PushAnswer(mark: mark, range: range))),
    ("pull", .pullRequest(pull)), ("pull-own_only", .pullRequest(pullOfOwn)),
    ("pull_answer", .pullAnswer(page)),
    ("values", .valuesRequest(values)), ("values_answer", .valuesAnswer(valuesAnswer)),
    ("digest", .digestRequest(digest)), ("digest_answer", .digestAnswer(digestKeys)),
    ("digest_answer-sums", .digestAnswer(digestSums)),
    ("error", .error(error)), ("hello_answer-attachments", .helloAnswer(helloOfAttachments)),
    ("push-attachment", .pushRequest(pushOfAttachment)),
    ("values_answer-attachment", .valuesAnswer(valuesOfAttachment)),
    ("attach", .attachRequest(attach)),
    ("attach_answer", .attachAnswer(AttachAnswer(received: film.length, range: range))),
    ("attach_answer-refused", .attachAnswer(refusedAttachment)),
    ("fetch", .fetchRequest(fetch)), ("fetch-blob", .fetchRequest(fetchOfBlob)),
    ("fetch_answer", .fetchAnswer(ContentAnswer(bytes: part))),
    ("fetch_answer-absent", .fetchAnswer(ContentAnswer(bytes: nil))),
  ]

  private static let replica = id(0x10)
  private static let other = id(0xa0)
  private static let epoch: UInt64 = 0x1122_3344_5566_7788
  private static let olderEpoch: UInt64 = 0x99aa_bbcc_ddee_ff00
  /// 2026-11-21T20:00:00Z and a count of 3.
  private static let commitTime: UInt64 = 1_795_291_200_000 << 16 | 3

  private static func id(_ first: UInt8) -> ReplicaID {
    guard let id = ReplicaID((0..<16).map { first &+ $0 }) else {
      preconditionFailure("sixteen bytes")
    }
    return id
  }

  private static let range = FeedRange(
    epochs: [
      FeedEpoch(epoch: olderEpoch, firstOffset: 1), FeedEpoch(epoch: epoch, firstOffset: 301),
    ], head: 420, truncatedThrough: 17)

  private static let scope = SyncScope(
    labels: ["2026", "inbox"], prefixBytes: [Array("note/".utf8), [0xff, 0x00]])

  private static func at(_ offset: UInt64) -> FeedPosition {
    FeedPosition(epoch: epoch, offset: offset)
  }

  private static let mark = ReplicaMark(
    number: 7, batchID: BatchID(0xdead_beef_0102_0304),
    verdicts: [
      .applied(at(400)), .applied(at(401)), .applied(at(402)),
      .duplicate(FeedPosition(epoch: olderEpoch, offset: 30)), .duplicate(.beginning),
      .conflict(at(350)), .lost(at(351)),
      .rejected(SyncRejection(code: "invalid", message: "too late for 2026 – sorry")),
      .aborted, .aborted,
    ])

  private static let hello = HelloRequest(
    replica: replica, cursor: at(398), scope: scope, hasResynced: true)

  private static let helloToPush = HelloRequest(replica: replica, cursor: at(398), reads: false)

  private static let helloAnswer = HelloAnswer(
    feed: other, range: range, mark: mark, time: 1_795_291_200_123, leaseSeconds: 7_776_000,
    isLeaseExpired: true, limits: SyncLimits(changes: 4000, bytes: 262_144), reach: reach)

  private static let reach: UInt64 = 0x0f1e_2d3c_4b5a_6978

  private static let push = PushRequest(
    replica: replica, number: 8, batchID: BatchID(0x0102_0304_0506_0708),
    knownHead: at(398), reach: reach,
    changes: [
      PushedChange(
        sequence: 1001, kind: .put, key: Array("note/1".utf8),
        content: SyncContent(
          value: Array(#"{"title":"Milk"}"#.utf8), labels: ["2026", "inbox"],
          hash: [0xca, 0xfe], maxAgeSeconds: 3600),
        base: .absent, commitTime: commitTime,
        time: Timestamp(seconds: 1_795_291_199, nanoseconds: 250_000_000), atomicGroup: 5),
      PushedChange(
        sequence: 1002, kind: .put, key: Array("note/2".utf8),
        content: SyncContent(value: [0x00, 0xff]), base: .position(at(77)),
        commitTime: commitTime + 1, atomicGroup: 5),
      PushedChange(
        sequence: 1004, kind: .delete, key: Array("note/10".utf8),
        base: .position(FeedPosition(epoch: olderEpoch, offset: 12)), commitTime: commitTime + 9),
      PushedChange(
        sequence: 1005, kind: .put, key: [0xff], content: SyncContent(),
        base: .operation(sequence: 1004), commitTime: commitTime + 65_536),
      PushedChange(
        sequence: 1006, kind: .put, key: Array("photo/1".utf8),
        content: SyncContent(labels: ["2026"], blob: blob), commitTime: commitTime + 65_537),
    ])

  private static let blob = AttachmentReference(
    sha256: (0..<32).map { 0x20 + $0 }, length: 1_000_000)

  private static let part = Array("the end".utf8)

  private static let fetchOfBlob = ContentRequest(
    replica: replica, key: Array("photo/1".utf8), attachment: blob,
    offset: blob.length - part.count, limit: 262_144, position: at(411))

  private static let film = AttachmentReference(
    sha256: (0..<32).map { 0x40 + $0 }, length: (1 << 30) + part.count)

  private static let helloOfAttachments = HelloAnswer(
    feed: other, range: range, mark: ReplicaMark(), time: 1_795_291_200_123, reach: reach,
    attachmentBytes: 4 << 30,
    policies: [
      CollectionPolicy(prefix: "", policy: .detect),
      CollectionPolicy(prefix: "setting/", policy: .lastWriterWins),
    ])

  private static let pushOfAttachment = PushRequest(
    replica: replica, number: 9, batchID: BatchID(0x0102_0304_0506_0709),
    previousBatchID: BatchID(0x0102_0304_0506_0708), knownHead: at(420),
    changes: [
      PushedChange(
        sequence: 1007, kind: .put, key: Array("film/7".utf8),
        content: SyncContent(value: Array("{}".utf8), labels: ["2026"], attachment: film),
        commitTime: commitTime, atomicGroup: 6),
      PushedChange(
        sequence: 1008, kind: .delete, key: Array("film/8".utf8), commitTime: commitTime + 1),
    ])

  private static let valuesOfAttachment = ValuesAnswer(
    entries: [
      FeedEntry(
        position: at(412), kind: .put, operation: OperationID(replica: other, sequence: 62),
        key: Array("film/7".utf8),
        content: SyncContent(value: Array("{}".utf8), attachment: film), commitTime: commitTime,
        received: commitTime - (3_600_000 << 16))
    ], answered: 1, range: range)

  private static let attach = AttachRequest(
    replica: replica, key: Array("film/7".utf8), attachment: film, offset: 1 << 30, bytes: part)

  private static let refusedAttachment = AttachAnswer(
    received: 0, rejection: SyncRejection(code: "tooLarge", message: "at most 4 GiB"), range: range)

  private static let fetch = ContentRequest(
    replica: replica, key: Array("film/7".utf8), attachment: film, offset: 1 << 30,
    limit: 262_144)

  private static let pull = PullRequest(
    replica: replica, after: at(398), scope: SyncScope(labels: ["inbox"]),
    limits: SyncLimits(changes: 500, bytes: 65_536), waitMilliseconds: 25_000,
    takesBlobs: true, everyVersion: true)

  private static let entries = [
    FeedEntry(
      position: at(399), kind: .put, operation: OperationID(replica: other, sequence: 55),
      key: Array("note/3".utf8),
      content: SyncContent(
        value: Array("Bread\n".utf8), labels: [EntryLabel([0x80]), EntryLabel([0xff])],
        hash: Array("v1".utf8)),
      commitTime: commitTime, time: Timestamp(seconds: -1, nanoseconds: 5)),
    FeedEntry(
      position: at(400), kind: .own, operation: OperationID(replica: replica, sequence: 1001),
      key: [], commitTime: commitTime + 2),
    FeedEntry(
      position: at(403), kind: .delete, operation: OperationID(replica: other, sequence: 56),
      key: Array("note/4".utf8), commitTime: commitTime + 3),
    FeedEntry(
      position: at(410), kind: .left, operation: OperationID(replica: other, sequence: 60),
      key: Array("task/1".utf8), commitTime: commitTime + 4),
    FeedEntry(
      position: at(411), kind: .put, operation: OperationID(replica: other, sequence: 61),
      key: Array("photo/2".utf8), content: SyncContent(blob: blob), commitTime: commitTime + 5),
  ]

  private static let pullOfOwn = PullRequest(replica: replica, after: at(398), ownOnly: true)

  private static let page = PullAnswer(
    entries: entries, cursor: at(420), range: range,
    mark: ReplicaMark(number: 7, batchID: BatchID(0xdead_beef_0102_0304)), reach: reach)

  private static let values = ValuesRequest(
    replica: replica, keys: [Array("note/3".utf8), Array("note/4".utf8), [0x00, 0xff]],
    takesBlobs: true)

  private static let valuesAnswer = ValuesAnswer(
    entries: [entries[0], entries[2]], answered: 2, range: range)

  private static let digest = DigestRequest(
    replica: replica, scope: scope, paths: [[0x0f, 0xa0], [0x10]])

  private static let digestKeys = DigestAnswer(
    position: at(420), range: range,
    parts: [
      DigestPart(
        total: DigestSum(keys: 2, sum: 8 << 64 | 6),
        content: .keys([
          DigestKey(
            key: Array("note/1".utf8), position: at(400), fingerprint: 3 << 64 | 1),
          DigestKey(
            key: Array("note/3".utf8), position: FeedPosition(epoch: olderEpoch, offset: 9),
            fingerprint: 5 << 64 | 5),
        ])), DigestPart(total: DigestSum(), content: .keys([])),
    ])

  private static let digestSums = DigestAnswer(
    position: at(420), range: range,
    parts: [
      DigestPart(
        total: DigestSum(keys: 3, sum: 2 << 64 - 1),
        content: .sums(
          (0..<256).map { $0 == 0x2a ? DigestSum(keys: 3, sum: 2 << 64 - 1) : DigestSum() }))
    ])

  private static let error = PeerError(.busy, "try again later", retryAfter: .seconds(30))
}
