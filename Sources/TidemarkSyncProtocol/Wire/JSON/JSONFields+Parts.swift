internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Parts of messages from JSON.
extension JSONFields {
  /// Everything when there is none.
  mutating func scope() throws(FormatError) -> SyncScope {
    let scope = try object("scope", isRequest: true) { (fields) throws(FormatError) in
      SyncScope(
        labels: try fields.sortedContents("labels", base64: "labels_base64").map { EntryLabel($0) },
        prefixBytes: try fields.sortedContents("prefixes", base64: "prefixes_base64"))
    }
    return scope ?? .everything
  }

  mutating func limits(isRequest: Bool) throws(FormatError) -> SyncLimits? {
    try object("limits", isRequest: isRequest) { (fields) throws(FormatError) in
      SyncLimits(
        changes: try required(
          fields.count("changes", atMost: WireLimits.statedLimit), "changes"),
        bytes: try required(fields.count("bytes", atMost: WireLimits.statedLimit), "bytes"))
    }
  }

  mutating func range() throws(FormatError) -> FeedRange {
    let range = try object("range", isRequest: false) { (fields) throws(FormatError) in
      FeedRange(
        epochs: try required(
          fields.objects("epochs", atMost: Limits.epochs, isRequest: false) {
            (row) throws(FormatError) in
            FeedEpoch(
              epoch: try required(row.word("epoch"), "epoch"),
              firstOffset: try required(row.number("first"), "first"))
          }, "epochs"),
        head: try required(fields.number("head"), "head"),
        truncatedThrough: try fields.number("truncated_through") ?? 0)
    }
    return try required(range, "range")
  }

  mutating func mark() throws(FormatError) -> ReplicaMark {
    let mark = try object("mark", isRequest: false) { (fields) throws(FormatError) in
      ReplicaMark(
        number: try required(fields.number("number"), "number"),
        batchID: BatchID(try required(fields.word("batch"), "batch")),
        verdicts: try required(
          fields.objects("verdicts", atMost: WireLimits.rows, isRequest: false) {
            (row) throws(FormatError) in try row.verdict()
          }, "verdicts"))
    }
    return try required(mark, "mark")
  }

  private mutating func verdict() throws(FormatError) -> Verdict {
    switch try required(text("verdict"), "verdict") {
    case "applied": .applied(try required(position("position"), "position"))
    case "duplicate": .duplicate(try required(position("position"), "position"))
    case "conflict": .conflict(try required(position("position"), "position"))
    case "lost": .lost(try required(position("position"), "position"))
    case "rejected":
      .rejected(
        Rejection(code: try required(text("code"), "code"), message: try text("message") ?? ""))
    case "aborted": .aborted
    default: throw FormatError("this verdict is not known here")
    }
  }

  mutating func change() throws(FormatError) -> PushedChange {
    let kind: ChangeKind =
      switch try required(text("op"), "op") {
      case "put": .put
      case "delete": .delete
      default: throw FormatError("op is neither put nor delete")
      }
    var base = ChangeBase.absent
    if let position = try position("base") { base = .position(position) }
    if let sequence = try number("base_seq") {
      guard base == .absent else { throw FormatError("two bases in a change") }
      base = .operation(sequence: sequence)
    }
    return PushedChange(
      sequence: try required(number("seq"), "seq"), kind: kind,
      key: try required(bytes("key", base64: "key_base64"), "key"),
      content: try content(hasValue: kind == .put), base: base,
      commitTime: try required(word("commit_time"), "commit_time"), time: try time(),
      atomicGroup: try number("atomic_group") ?? 0)
  }

  mutating func entries(_ name: StaticString) throws(FormatError) -> [FeedEntry]? {
    try objects(name, atMost: WireLimits.rows, isRequest: false) {
      (fields) throws(FormatError) in try fields.entry()
    }
  }

  private mutating func entry() throws(FormatError) -> FeedEntry {
    let name = try required(text("op"), "op")
    guard let kind = FeedEntry.Kind.allCases.first(where: { $0.jsonName == name }) else {
      throw FormatError("this op is not known here")
    }
    guard let operation = WireText.operation(try required(bytes("op_id"), "op_id")) else {
      throw FormatError("op_id is no operation id")
    }
    let key = try bytes("key", base64: "key_base64")
    return FeedEntry(
      position: try required(position("position"), "position"), kind: kind, operation: operation,
      key: kind == .own ? key ?? [] : try required(key, "key"),
      content: try content(hasValue: kind == .put),
      commitTime: try word("commit_time") ?? 0, time: try time(), received: try word("received"))
  }

  private mutating func content(hasValue: Bool) throws(FormatError) -> SyncContent {
    let value = try bytes("value", base64: "value_base64")
    let blob = try attachment("blob")
    guard hasValue ? value == nil || blob == nil : value == nil && blob == nil else {
      throw FormatError("a value where none may be")
    }
    return SyncContent(
      value: hasValue && blob == nil ? try required(value, "value") : [],
      labels: try sortedContents("labels", base64: "labels_base64").map { EntryLabel($0) },
      hash: try bytes("hash", base64: "hash_base64"), maxAgeSeconds: try u32("max_age"),
      blob: blob, attachment: try attachment())
  }

  /// A text after RFC 3339, or a pair of seconds and nanoseconds.
  private mutating func time() throws(FormatError) -> Timestamp? {
    let text = try bytes("time")
    guard let pair = try array("time_unix", atMost: 2) else {
      guard let text else { return nil }
      guard let time = Timestamp(rfc3339: text.rawSpan) else {
        throw FormatError("time is not RFC 3339")
      }
      return time
    }
    guard text == nil, pair.count == 2, case .number(let size, let isNegative) = pair[0],
      case .number(let nanoseconds, isNegative: false) = pair[1], nanoseconds < 1_000_000_000,
      let seconds = isNegative ? Self.negated(size) : Int64(exactly: size)
    else { throw FormatError("time_unix is not two whole numbers, the second below 1000000000") }
    return Timestamp(seconds: seconds, nanoseconds: UInt32(nanoseconds))
  }

  private static func negated(_ size: UInt64) -> Int64? {
    size <= 1 << 63 ? Int64(bitPattern: 0 &- size) : nil
  }

  /// Two lists as one, in byte order.
  private mutating func sortedContents(
    _ name: StaticString, base64 other: StaticString
  ) throws(FormatError) -> [[UInt8]] {
    var contents: [[UInt8]] = []
    for (name, isText) in [(name, true), (other, false)] {
      for element in try array(name, atMost: WireLimits.scopeRows) ?? [] {
        guard case .string(let range) = element else {
          throw FormatError("\(name) has an element that is no string")
        }
        guard !isText else {
          contents.append(tree.bytes(range))
          continue
        }
        guard let bytes = Base64.decode(tree.strings.rawSpan.extracting(range)) else {
          throw FormatError("\(name) has an element that is no base64")
        }
        contents.append(bytes)
      }
    }
    return contents.sorted { $0.lexicographicallyPrecedes($1) }
  }
}
