internal import Tidemark
internal import TidemarkEngine

/// Messages as a whole, field by field as in `WireProtocol.md`.
extension WireReader {
  mutating func helloRequest() throws(FormatError) -> HelloRequest {
    let replica = try replica()
    let flags = try flags(WireFlags.hasResynced | WireFlags.readsNothing)
    return HelloRequest(
      replica: replica, cursor: try position(), scope: try scope(),
      hasResynced: flags & WireFlags.hasResynced != 0, reads: flags & WireFlags.readsNothing == 0)
  }

  mutating func helloAnswer(
    _ reach: UInt64?, _ fields: [UInt64: [UInt8]]
  ) throws(FormatError) -> HelloAnswer {
    var attachmentBytes: Int?
    if let field = fields[WireFlags.attachmentBytesField] {
      var number = ByteReader(field.rawSpan)
      attachmentBytes = try number.varint(atMost: Limits.attachmentBytes)
      guard number.remaining == 0 else { throw FormatError("bytes behind a number") }
    }
    let policies = try fields[WireFlags.policiesField].map(Self.policies) ?? []
    let feed = try replica()
    let flags = try flags(WireFlags.hasLease | WireFlags.isLeaseExpired)
    let lease = flags & WireFlags.hasLease != 0 ? try u32() : nil
    let time = try bytes.varint()
    let limits = try limits()
    return HelloAnswer(
      feed: feed, range: try range(), mark: try mark(), time: time, leaseSeconds: lease,
      isLeaseExpired: flags & WireFlags.isLeaseExpired != 0, limits: limits, reach: reach,
      attachmentBytes: attachmentBytes, policies: policies)
  }

  private static func policies(_ field: [UInt8]) throws(FormatError) -> [CollectionPolicy] {
    var reader = ByteReader(field.rawSpan)
    var policies: [CollectionPolicy] = []
    let count = try reader.varint(atMost: WireLimits.policies)
    guard count > 0 else { throw FormatError("a list of no policies") }
    for _ in 0..<count {
      let prefix = Key(try reader.array(try reader.varint(atMost: reader.remaining)))
      guard let policy = ConflictPolicy(rawValue: try reader.u8()) else {
        throw FormatError("a policy is not known here")
      }
      policies.append(CollectionPolicy(prefix: prefix, policy: policy))
    }
    guard reader.remaining == 0 else { throw FormatError("bytes behind the policies") }
    return policies
  }

  mutating func pushAnswer() throws(FormatError) -> PushAnswer {
    let range = try range()
    return PushAnswer(mark: try mark(), range: range, current: try entries())
  }

  mutating func pullRequest() throws(FormatError) -> PullRequest {
    let replica = try replica()
    let flags = try flags(WireFlags.takesBlobs | WireFlags.everyVersion | WireFlags.ownOnly)
    return PullRequest(
      replica: replica, after: try position(), scope: try scope(), limits: try limits(),
      waitMilliseconds: try u32(), takesBlobs: flags & WireFlags.takesBlobs != 0,
      everyVersion: flags & WireFlags.everyVersion != 0,
      ownOnly: flags & WireFlags.ownOnly != 0)
  }

  mutating func pullAnswer(_ reach: UInt64?) throws(FormatError) -> PullAnswer {
    let range = try range()
    let cursor = try position()
    let mark = try mark()
    return PullAnswer(
      entries: try entries(), cursor: cursor, range: range, mark: mark, reach: reach)
  }

  mutating func valuesRequest() throws(FormatError) -> ValuesRequest {
    var request = ValuesRequest(replica: try replica(), keys: [])
    request.takesBlobs = try flags(WireFlags.valuesTakeBlobs) != 0
    let count = try count(WireLimits.rows, each: 2)
    request.keys.reserveCapacity(count)
    for _ in 0..<count { request.keys.append(try key()) }
    return request
  }

  mutating func valuesAnswer(_ reach: UInt64?) throws(FormatError) -> ValuesAnswer {
    let range = try range()
    let answered = try bytes.varint(atMost: WireLimits.rows)
    return ValuesAnswer(
      entries: try entries(), answered: answered, range: range, reach: reach)
  }

  mutating func digestRequest() throws(FormatError) -> DigestRequest {
    let (replica, scope) = (try replica(), try scope())
    var paths: [[UInt8]] = []
    for _ in 0..<(try count(WireLimits.digestPaths, each: 1)) {
      paths.append(try bytes.array(try bytes.varint(atMost: WireLimits.pathBytes)))
    }
    return DigestRequest(replica: replica, scope: scope, paths: paths)
  }

  mutating func digestAnswer(_ reach: UInt64?) throws(FormatError) -> DigestAnswer {
    let range = try range()
    let position = try position()
    var parts: [DigestPart] = []
    var rows = WireLimits.rows
    for _ in 0..<(try count(WireLimits.digestPaths, each: 3)) {
      parts.append(try digestPart(&rows))
    }
    return DigestAnswer(position: position, range: range, parts: parts, reach: reach)
  }

  /// - Parameter rows: how many keys there may be in this part and those behind it.
  private mutating func digestPart(_ rows: inout Int) throws(FormatError) -> DigestPart {
    let total = try sum()
    guard try flags(1) == 0 else {
      let count = try count(rows, each: 20)
      rows -= count
      var keys: [DigestKey] = []
      keys.reserveCapacity(count)
      for _ in 0..<count { keys.append(try digestKey()) }
      return DigestPart(total: total, content: .keys(keys))
    }
    guard bytes.remaining >= WireLimits.digestParts else { throw FormatError("ends too early") }
    var sums: [DigestSum] = []
    sums.reserveCapacity(WireLimits.digestParts)
    for _ in 0..<WireLimits.digestParts { sums.append(try sum()) }
    return DigestPart(total: total, content: .sums(sums))
  }

  private mutating func digestKey() throws(FormatError) -> DigestKey {
    let key = try key()
    if try flags(1) != 0 { last.epoch = try otherEpoch(than: last.epoch) }
    last.offset = try number(from: last.offset)
    return DigestKey(
      key: key, position: last, low: try bytes.u64(), high: try bytes.u64())
  }

  private mutating func sum() throws(FormatError) -> DigestSum {
    let keys = try bytes.varint()
    guard keys > 0 else { return DigestSum() }
    return DigestSum(keys: keys, low: try bytes.u64(), high: try bytes.u64())
  }

  mutating func error() throws(FormatError) -> PeerError {
    let code = Int(try bytes.u8())
    guard code > 0, code <= PeerError.Kind.wireOrder.count else {
      throw FormatError("error \(code) is not known here")
    }
    let seconds = try flags(WireFlags.hasRetryAfter) != 0 ? try u32() : nil
    return PeerError(
      PeerError.Kind.wireOrder[code - 1], try text(atMost: WireLimits.textBytes),
      retryAfter: seconds.map { .seconds($0) })
  }
}
