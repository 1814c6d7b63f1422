internal import Tidemark
internal import TidemarkEngine

/// Messages from JSON, field by field as in `WireProtocol.md`.
extension WireMessage {
  init(_ tree: JSONTree) throws(FormatError) {
    var fields = try JSONFields(tree.root, in: tree)
    let name = try required(try fields.text("type"), "type")
    guard let kind = Kind.allCases.first(where: { $0.name == name }) else {
      throw FormatError("this type of message is not known here")
    }
    self = try Self.read(kind, &fields)
    try fields.finish(isRequest: kind.isRequest)
  }

  private static func read(
    _ kind: Kind, _ fields: inout JSONFields
  ) throws(FormatError) -> WireMessage {
    switch kind {
    case .helloRequest: .helloRequest(try fields.helloRequest())
    case .helloAnswer: .helloAnswer(try fields.helloAnswer())
    case .pushRequest: .pushRequest(try fields.pushRequest())
    case .pushAnswer:
      .pushAnswer(
        PushAnswer(
          mark: try fields.mark(), range: try fields.range(),
          current: try fields.entries("current") ?? []))
    case .pullRequest: .pullRequest(try fields.pullRequest())
    case .pullAnswer:
      .pullAnswer(
        PullAnswer(
          entries: try required(fields.entries("entries"), "entries"),
          cursor: try required(fields.position("cursor"), "cursor"),
          range: try fields.range(), mark: try fields.mark(), reach: try fields.word("reach")))
    case .valuesRequest: .valuesRequest(try fields.valuesRequest())
    case .valuesAnswer:
      .valuesAnswer(
        ValuesAnswer(
          entries: try required(fields.entries("entries"), "entries"),
          answered: try required(
            fields.count("answered", atMost: WireLimits.rows), "answered"),
          range: try fields.range(), reach: try fields.word("reach")))
    case .digestRequest: .digestRequest(try fields.digestRequest())
    case .digestAnswer: .digestAnswer(try fields.digestAnswer())
    case .downloadRequest: .downloadRequest(try fields.downloadRequest())
    case .downloadAnswer:
      .downloadAnswer(
        DownloadAnswer(
          length: try fields.length("length"),
          bytes: try required(fields.bytes("bytes", base64: "bytes_base64"), "bytes")))
    case .attachRequest: .attachRequest(try fields.attachRequest())
    case .attachAnswer: .attachAnswer(try fields.attachAnswer())
    case .fetchRequest: .fetchRequest(try fields.fetchRequest())
    case .fetchAnswer:
      .fetchAnswer(ContentAnswer(bytes: try fields.bytes("bytes", base64: "bytes_base64")))
    case .error: .error(try fields.error())
    }
  }
}

extension JSONFields {
  fileprivate mutating func helloRequest() throws(FormatError) -> HelloRequest {
    HelloRequest(
      replica: try required(replica("replica"), "replica"),
      cursor: try position("cursor") ?? .beginning, scope: try scope(),
      hasResynced: try flag("has_resynced"), reads: try !flag("reads_nothing"))
  }

  fileprivate mutating func helloAnswer() throws(FormatError) -> HelloAnswer {
    HelloAnswer(
      feed: try required(replica("feed"), "feed"), range: try range(), mark: try mark(),
      time: try required(number("time"), "time"), leaseSeconds: try u32("lease_seconds"),
      isLeaseExpired: try flag("lease_expired"),
      limits: try required(limits(isRequest: false), "limits"), reach: try word("reach"),
      attachmentBytes: try count("attachment_bytes", atMost: Limits.attachmentBytes),
      policies: try objects("policies", atMost: WireLimits.policies, isRequest: false) {
        (fields) throws(FormatError) in try fields.policy()
      } ?? [])
  }

  private mutating func policy() throws(FormatError) -> CollectionPolicy {
    let name = try required(text("policy"), "policy")
    guard let policy = ConflictPolicy.allCases.first(where: { $0.jsonName == name }) else {
      throw FormatError("this policy is not known here")
    }
    let prefix = try required(bytes("prefix", base64: "prefix_base64"), "prefix")
    return CollectionPolicy(prefix: Key(prefix), policy: policy)
  }

  fileprivate mutating func pushRequest() throws(FormatError) -> PushRequest {
    PushRequest(
      replica: try required(replica("replica"), "replica"),
      number: try required(number("number"), "number"),
      batchID: BatchID(try required(word("batch"), "batch")),
      previousBatchID: try word("previous_batch").map { BatchID($0) },
      knownHead: try position("known_head") ?? .beginning, reach: try word("reach"),
      changes: try required(
        objects("changes", atMost: WireLimits.rows, isRequest: true) {
          (fields) throws(FormatError) in try fields.change()
        }, "changes"))
  }

  fileprivate mutating func pullRequest() throws(FormatError) -> PullRequest {
    PullRequest(
      replica: try required(replica("replica"), "replica"),
      after: try required(position("after"), "after"), scope: try scope(),
      limits: try limits(isRequest: true) ?? SyncLimits(),
      waitMilliseconds: try u32("wait_milliseconds") ?? 0,
      takesBlobs: try flag("takes_blobs"), everyVersion: try flag("every_version"),
      ownOnly: try flag("own_only"))
  }

  fileprivate mutating func valuesRequest() throws(FormatError) -> ValuesRequest {
    ValuesRequest(
      replica: try required(replica("replica"), "replica"),
      keys: try required(
        objects("keys", atMost: WireLimits.rows, isRequest: true) {
          (fields) throws(FormatError) in
          try required(fields.bytes("key", base64: "key_base64"), "key")
        }, "keys"), takesBlobs: try flag("takes_blobs"))
  }

  fileprivate mutating func downloadRequest() throws(FormatError) -> DownloadRequest {
    DownloadRequest(
      replica: try required(replica("replica"), "replica"),
      position: try required(position("position"), "position"), offset: try length("offset"),
      limit: try required(count("limit", atMost: DownloadRequest.mostBytes), "limit"))
  }

  /// The length of a value, or a place in one.
  fileprivate mutating func length(_ name: StaticString) throws(FormatError) -> Int {
    try required(count(name, atMost: Limits.valueBytes), name)
  }

  fileprivate mutating func digestRequest() throws(FormatError) -> DigestRequest {
    var paths: [[UInt8]] = []
    for element in try array("paths", atMost: WireLimits.digestPaths) ?? [] {
      guard case .string(let digits) = element else { throw FormatError("a path is no string") }
      paths.append(try Self.path(tree.bytes(digits)))
    }
    return DigestRequest(
      replica: try required(replica("replica"), "replica"), scope: try scope(),
      paths: paths.isEmpty ? [[]] : paths)
  }

  private static func path(_ digits: [UInt8]) throws(FormatError) -> [UInt8] {
    guard digits.count % 2 == 0 else { throw FormatError("a path is half a byte too long") }
    guard digits.count <= 2 * WireLimits.pathBytes else {
      throw FormatError(
        "a path has \(digits.count / 2) bytes; at most \(WireLimits.pathBytes) are allowed")
    }
    var path: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = Hex.value(digits[index]), let low = Hex.value(digits[index + 1]) else {
        throw FormatError("a path is not hexadecimal")
      }
      path.append(high << 4 | low)
    }
    return path
  }

  fileprivate mutating func digestAnswer() throws(FormatError) -> DigestAnswer {
    var rows = WireLimits.rows
    return DigestAnswer(
      position: try required(position("position"), "position"), range: try range(),
      parts: try required(
        objects("parts", atMost: WireLimits.digestPaths, isRequest: false) {
          (fields) throws(FormatError) in try fields.digestPart(&rows)
        }, "parts"), reach: try word("reach"))
  }

  /// - Parameter rows: how many keys there may be in this part and those behind it.
  private mutating func digestPart(_ rows: inout Int) throws(FormatError) -> DigestPart {
    let total = try required(
      object("total", isRequest: false) { (fields) throws(FormatError) in try fields.sum() },
      "total")
    let sums = try objects("sums", atMost: WireLimits.digestParts, isRequest: false) {
      (fields) throws(FormatError) in try fields.sum()
    }
    let keys = try objects("keys", atMost: rows, isRequest: false) {
      (fields) throws(FormatError) in
      let sum = try fields.fingerprint()
      return DigestKey(
        key: try required(fields.bytes("key", base64: "key_base64"), "key"),
        position: try required(fields.position("position"), "position"), low: sum.low,
        high: sum.high)
    }
    guard (sums == nil) != (keys == nil) else { throw FormatError("either sums or keys") }
    rows -= keys?.count ?? 0
    return DigestPart(total: total, content: sums.map { .sums($0) } ?? .keys(keys ?? []))
  }

  private mutating func sum() throws(FormatError) -> DigestSum {
    let keys = try required(number("keys"), "keys")
    guard keys > 0 else { return DigestSum() }
    let sum = try fingerprint()
    return DigestSum(keys: keys, low: sum.low, high: sum.high)
  }

  /// Thirty-two hexadecimal digits, the high half first.
  mutating func fingerprint() throws(FormatError) -> (low: UInt64, high: UInt64) {
    let digits = try required(bytes("sum"), "sum")
    guard digits.count == 32, let high = WireText.word(digits[..<16]),
      let low = WireText.word(digits[16...])
    else { throw FormatError("sum is not thirty-two hexadecimal digits") }
    return (low, high)
  }

  fileprivate mutating func error() throws(FormatError) -> PeerError {
    let name = try required(text("kind"), "kind")
    guard let kind = PeerError.Kind.wireOrder.first(where: { $0.jsonName == name }) else {
      throw FormatError("this kind of error is not known here")
    }
    return PeerError(
      kind, try text("message") ?? "",
      retryAfter: try u32("retry_after_seconds").map { .seconds($0) })
  }
}
