import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol

/// Messages by chance, of every kind and shape that the protocol has.
struct RandomMessages {
  private var random: SeededGenerator
  private var replicas: [ReplicaID] = []
  private var epochs: [UInt64] = []

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    for _ in 0..<3 {
      epochs.append(random.next())
      replicas.append(Self.replica(&random))
    }
  }

  mutating func message(_ kind: WireMessage.Kind) -> WireMessage {
    switch kind {
    case .helloRequest:
      .helloRequest(
        HelloRequest(
          replica: replica(), cursor: position(), scope: scope(), hasResynced: flip(),
          reads: flip()))
    case .helloAnswer:
      .helloAnswer(
        HelloAnswer(
          feed: replica(), range: range(), mark: mark(), time: number(),
          leaseSeconds: flip() ? u32() : nil, isLeaseExpired: flip(), limits: limits(),
          reach: flip() ? random.next() : nil,
          attachmentBytes: flip() ? place() : nil, policies: policies()))
    case .pushRequest:
      .pushRequest(
        PushRequest(
          replica: replica(), number: count(), batchID: BatchID(random.next()),
          previousBatchID: flip() ? BatchID(random.next()) : nil,
          knownHead: position(), reach: flip() ? random.next() : nil,
          changes: many(20) { $0.change() }))
    case .pushAnswer: .pushAnswer(PushAnswer(mark: mark(), range: range()))
    case .pullRequest:
      .pullRequest(
        PullRequest(
          replica: replica(), after: position(), scope: scope(), limits: limits(),
          waitMilliseconds: u32(), takesBlobs: flip(), everyVersion: flip(),
          ownOnly: flip()))
    case .pullAnswer:
      .pullAnswer(
        PullAnswer(
          entries: many(20) { $0.entry() }, cursor: position(), range: range(), mark: mark(),
          reach: flip() ? random.next() : nil))
    case .valuesRequest:
      .valuesRequest(
        ValuesRequest(replica: replica(), keys: many(20) { $0.key() }, takesBlobs: flip()))
    case .valuesAnswer:
      .valuesAnswer(
        ValuesAnswer(
          entries: many(20) { $0.entry() }, answered: random.int(in: 0...65_536),
          range: range(), reach: flip() ? random.next() : nil))
    case .digestRequest:
      .digestRequest(
        DigestRequest(replica: replica(), scope: scope(), paths: paths()))
    case .digestAnswer: .digestAnswer(digestAnswer())
    case .attachRequest, .attachAnswer, .fetchRequest, .fetchAnswer: attachmentMessage(kind)
    case .error:
      .error(
        PeerError(
          random.pick(PeerError.Kind.wireOrder) ?? .failed, text(1_400),
          retryAfter: flip() ? .seconds(u32()) : nil))
    }
  }

  private mutating func attachmentMessage(_ kind: WireMessage.Kind) -> WireMessage {
    switch kind {
    case .attachRequest: .attachRequest(attach())
    case .attachAnswer:
      .attachAnswer(
        AttachAnswer(
          received: place(),
          rejection: flip() ? SyncRejection(code: text(30), message: text(1_400)) : nil,
          range: range()))
    case .fetchRequest:
      .fetchRequest(
        ContentRequest(
          replica: replica(), key: key(), attachment: attachment(), offset: place(),
          limit: random.int(in: 1...AttachRequest.mostBytes),
          position: flip() ? position() : .beginning))
    default: .fetchAnswer(ContentAnswer(bytes: flip() ? bytes(0...60) : nil))
    }
  }

  // MARK: Parts

  static func replica(_ random: inout SeededGenerator) -> ReplicaID {
    guard let replica = ReplicaID(random.bytes(ReplicaID.byteCount)) else {
      preconditionFailure("sixteen bytes")
    }
    return replica
  }

  private mutating func flip() -> Bool { random.chance(0.5) }

  private mutating func number() -> UInt64 {
    random.pick([0, 1, 127, 128, 1 << 32, 1 << 48, 1 << 63, .max - 1, .max, random.next()]) ?? 0
  }

  /// An offset, or the number of a batch.
  private mutating func count() -> UInt64 { number() & (WireLimits.counts - 1) }

  private mutating func u32() -> UInt32 { UInt32(truncatingIfNeeded: number()) }

  private mutating func replica() -> ReplicaID { random.pick(replicas) ?? replicas[0] }

  private mutating func many<T>(
    _ most: Int, _ make: (inout RandomMessages) -> T
  ) -> [T] {
    (0..<random.int(in: 0...most)).map { _ in make(&self) }
  }

  private mutating func position() -> FeedPosition {
    if random.chance(0.1) { return .beginning }
    let offset = random.chance(0.7) ? UInt64(random.int(in: 0...2000)) : count()
    return FeedPosition(epoch: random.pick(epochs) ?? 0, offset: offset)
  }

  private mutating func text(_ most: Int) -> String {
    let letters = ["a", "b", " ", "\"", "\\", "\n", "\0", "é", "汉", "👩‍👩‍👧", "/", "\u{7f}"]
    return (0..<random.int(in: 0...most / 3)).map { _ in random.pick(letters) ?? "" }.joined()
  }

  private mutating func bytes(_ range: ClosedRange<Int>) -> [UInt8] {
    let count = random.int(in: range)
    guard flip() else { return random.bytes(count) }
    let letters = Array("ab/\"\\{}\n".utf8)
    return (0..<count).map { _ in random.pick(letters) ?? 0 }
  }

  private mutating func place() -> Int { random.int(in: 0...Limits.attachmentBytes) }

  private mutating func attachment() -> AttachmentReference {
    AttachmentReference(sha256: random.bytes(32), length: place())
  }

  private mutating func attach() -> AttachRequest {
    let bytes = bytes(0...60)
    let offset = random.int(in: 0...100) * AttachRequest.partBytes
    return AttachRequest(
      replica: replica(), key: key(),
      attachment: AttachmentReference(sha256: random.bytes(32), length: offset + bytes.count),
      offset: offset, bytes: bytes)
  }

  private mutating func key() -> [UInt8] {
    if random.chance(0.02) { return bytes(60_000...65_535) }
    return Array("note/".utf8) + bytes(0...6)
  }

  private mutating func labels(_ most: Int) -> [EntryLabel] {
    Set(many(most) { EntryLabel($0.bytes(1...($0.random.chance(0.05) ? 255 : 4))) }).sorted()
  }

  /// In any order, and with repeats.
  private mutating func scope() -> SyncScope {
    guard random.chance(0.7) else { return .everything }
    return SyncScope(
      labels: many(5) { EntryLabel($0.bytes(1...3)) }, prefixBytes: many(5) { $0.bytes(0...3) })
  }

  private mutating func limits() -> SyncLimits {
    SyncLimits(changes: random.int(in: 1...5000), bytes: random.int(in: 1...Int(Int32.max)))
  }

  private mutating func range() -> FeedRange {
    let offsets = many(4) { max(1, $0.count()) }.sorted()
    return FeedRange(
      epochs: offsets.map { FeedEpoch(epoch: random.next(), firstOffset: $0) }, head: count(),
      truncatedThrough: count())
  }

  private mutating func mark() -> ReplicaMark {
    var verdicts: [PushVerdict] = []
    for _ in 0..<random.int(in: 0...8) {
      let position = position()
      let count = UInt64(random.int(in: 1...40))
      let rejection = SyncRejection(code: text(90), message: text(1_300))
      let code = random.pick(PushVerdict.Code.wireOrder) ?? .applied
      for step in 0..<count {
        let next = FeedPosition(
          epoch: position.epoch, offset: min(position.offset + step, WireLimits.counts - 1))
        verdicts.append(PushVerdict(code, at: next, rejection))
      }
    }
    return ReplicaMark(number: count(), batchID: BatchID(random.next()), verdicts: verdicts)
  }

  /// The length of a value.
  private mutating func length() -> Int { random.int(in: 0...Limits.valueBytes) }

  private mutating func blob() -> AttachmentReference {
    AttachmentReference(
      sha256: random.bytes(32),
      length: random.int(in: SyncContent.mostInlineBytes + 1...Limits.valueBytes))
  }

  private mutating func content(isPut: Bool) -> SyncContent {
    let blob = isPut && random.chance(0.1) ? blob() : nil
    return SyncContent(
      value: isPut && blob == nil ? bytes(0...(random.chance(0.1) ? 20_000 : 60)) : [],
      labels: flip() ? labels(5) : [], hash: random.chance(0.3) ? bytes(0...64) : nil,
      maxAgeSeconds: random.chance(0.3) ? u32() : nil, blob: blob,
      attachment: isPut && random.chance(0.2) ? attachment() : nil)
  }

  private mutating func time() -> Timestamp? {
    guard flip() else { return nil }
    let seconds = flip() ? Int64(random.int(in: -10...2_000_000_000)) : Int64(bitPattern: number())
    return Timestamp(seconds: seconds, nanoseconds: UInt32(random.int(in: 0...999_999_999)))
  }

  private mutating func change() -> PushedChange {
    let kind: ChangeKind = flip() ? .put : .delete
    let bases: [ChangeBase] = [
      .absent, .position(position()), .operation(sequence: number()),
    ]
    return PushedChange(
      sequence: number(), kind: kind, key: key(), content: content(isPut: kind == .put),
      base: random.pick(bases) ?? .absent, commitTime: number(), time: time(),
      atomicGroup: flip() ? 0 : number())
  }

  private mutating func entry() -> FeedEntry {
    let kind = random.pick(FeedEntry.Kind.allCases) ?? .put
    return FeedEntry(
      position: position(), kind: kind,
      operation: OperationID(replica: replica(), sequence: count()),
      key: kind == .own ? [] : key(), content: content(isPut: kind == .put),
      commitTime: number(), time: time(), received: flip() ? number() : nil)
  }

  private mutating func policies() -> [CollectionPolicy] {
    let prefixes = Set(many(5) { $0.bytes(0...3) })
    return prefixes.sorted { $0.lexicographicallyPrecedes($1) }
      .map { CollectionPolicy(prefix: $0, policy: flip() ? .detect : .lastWriterWins) }
  }

  private mutating func sum() -> DigestSum {
    flip()
      ? DigestSum()
      : DigestSum(keys: max(1, number()), sum: UInt128(number()) << 64 | UInt128(number()))
  }

  /// In order, and none within another.
  private mutating func paths() -> [[UInt8]] {
    guard !flip() else { return [random.bytes(random.int(in: 0...32))] }
    let length = random.int(in: 1...32)
    return Set((1...random.int(in: 1...9)).map { _ in random.bytes(length) })
      .sorted { $0.lexicographicallyPrecedes($1) }
  }

  private mutating func digestAnswer() -> DigestAnswer {
    DigestAnswer(
      position: position(), range: range(),
      parts: (1...random.int(in: 1...4)).map { _ in digestPart() },
      reach: flip() ? random.next() : nil)
  }

  private mutating func digestPart() -> DigestPart {
    let content: DigestPart.Content =
      flip()
      ? .sums((0..<256).map { _ in sum() })
      : .keys(
        many(20) {
          DigestKey(
            key: $0.key(), position: $0.position(),
            fingerprint: UInt128($0.number()) << 64 | UInt128($0.number()))
        })
    return DigestPart(total: sum(), content: content)
  }
}
