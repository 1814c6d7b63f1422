internal import Tidemark
internal import TidemarkEngine

/// Writes messages in the binary coding. They must have passed their check before.
///
/// Every value has one coding, so that equal messages are equal bytes.
struct WireWriter {
  var out: ByteWriter
  /// The last position, from which the next is counted.
  var last = Position.beginning
  /// The last key, whose beginning the next may share.
  var lastKey: [UInt8] = []
  /// How many bytes of keys may still come: a reader does not take more.
  private var keyBudget: Int

  init(budget: Int, capacity: Int) {
    out = ByteWriter(capacity: capacity)
    keyBudget = budget
  }

  mutating func write(_ message: WireMessage) throws(FormatError) {
    optionalFields(of: message)
    switch message {
    case .helloRequest(let request): write(request)
    case .helloAnswer(let answer): write(answer)
    case .pushRequest(let request): try write(request)
    case .pushAnswer(let answer):
      write(answer.range)
      write(answer.mark)
      try write(answer.current)
    case .pullRequest(let request): write(request)
    case .pullAnswer(let answer):
      writeHead(answer)
      try write(answer.entries)
    case .valuesRequest(let request):
      replica(request.replica)
      out.u8(request.takesBlobs ? WireFlags.valuesTakeBlobs : 0)
      out.varint(request.keys.count)
      for key in request.keys { try self.key(key) }
    case .valuesAnswer(let answer):
      write(answer.range)
      out.varint(answer.answered)
      try write(answer.entries)
    case .digestRequest(let request):
      replica(request.replica)
      write(request.scope)
      out.varint(request.paths.count)
      for path in request.paths { bytes(path) }
    case .digestAnswer(let answer): try write(answer)
    case .downloadRequest(let request): write(request)
    case .downloadAnswer(let answer): write(answer)
    case .attachRequest(let request): try write(request)
    case .attachAnswer(let answer): write(answer)
    case .fetchRequest(let request): try write(request)
    case .fetchAnswer(let answer): write(answer)
    case .error(let error): write(error)
    }
  }

  /// A page up to its entries, which may be the same for many readers.
  mutating func writeHead(_ page: PullAnswer) {
    write(page.range)
    position(page.cursor)
    write(page.mark)
  }

  mutating func optionalFields(of message: WireMessage) {
    let reach: UInt64? =
      switch message {
      case .helloAnswer(let answer): answer.reach
      case .pushRequest(let request): request.reach
      case .pullAnswer(let answer): answer.reach
      case .valuesAnswer(let answer): answer.reach
      case .digestAnswer(let answer): answer.reach
      default: nil
      }
    var fields = ByteWriter()
    func add(_ field: UInt64, word: UInt64) {
      fields.varint(field)
      fields.varint(8)
      fields.u64(word)
    }
    if let reach { add(WireFlags.reachField, word: reach) }
    if case .pushRequest(let request) = message, let previous = request.previousBatchID {
      add(WireFlags.previousBatchField, word: previous.bits)
    }
    if case .helloAnswer(let answer) = message {
      if let most = answer.attachmentBytes {
        var number = ByteWriter()
        number.varint(most)
        fields.varint(WireFlags.attachmentBytesField)
        fields.blob(number.bytes)
      }
      if !answer.policies.isEmpty {
        fields.varint(WireFlags.policiesField)
        fields.blob(Self.encoded(answer.policies))
      }
    }
    bytes(fields.bytes)
  }

  /// Varint count; for each bytes of the prefix, u8 policy.
  private static func encoded(_ policies: [CollectionPolicy]) -> [UInt8] {
    var list = ByteWriter()
    list.varint(policies.count)
    for row in policies {
      list.blob(row.prefix.bytes)
      list.u8(row.policy.rawValue)
    }
    return list.bytes
  }

  // MARK: Parts

  mutating func replica(_ replica: ReplicaID) { out.raw(replica.bytes) }

  mutating func bytes(_ bytes: [UInt8]) {
    out.blob(bytes)
  }

  mutating func text(_ text: String) { bytes(Array(text.utf8)) }

  /// A position that stands alone.
  mutating func position(_ position: Position) {
    position.encode(into: &out)
    last = position
  }

  /// How far a number is from another one, in both directions around 2^64.
  @inline(__always)
  mutating func difference(_ number: UInt64, from other: UInt64) {
    out.zigzag(Int64(bitPattern: number &- other))
  }

  /// A key that may share the beginning of the last one.
  mutating func key(_ key: [UInt8]) throws(FormatError) {
    keyBudget -= key.count
    guard keyBudget >= 0 else { throw FormatError("keys are longer than a message may be") }
    let shared = key.rawSpan.commonPrefix(with: lastKey.rawSpan)
    out.varint(shared)
    out.varint(key.count - shared)
    out.raw(key.rawSpan.extracting(shared..<key.count))
    lastKey = key
  }

  mutating func labels(_ labels: [EntryLabel]) {
    out.varint(labels.count)
    for label in labels { bytes(label.bytes) }
  }

  mutating func write(_ scope: SyncScope) {
    labels(scope.labels)
    out.varint(scope.prefixBytes.count)
    for prefix in scope.prefixBytes { bytes(prefix) }
  }

  mutating func write(_ limits: SyncLimits) {
    out.varint(limits.changes)
    out.varint(limits.bytes)
  }

  mutating func write(_ range: FeedRange) {
    out.varint(range.epochs.count)
    var first: UInt64 = 0
    for row in range.epochs {
      out.u64(row.epoch)
      out.varint(row.firstOffset - first)
      first = row.firstOffset
    }
    out.varint(range.head)
    out.varint(range.truncatedThrough)
  }

  mutating func write(_ mark: ReplicaMark) {
    out.varint(mark.number)
    out.u64(mark.batchID.bits)
    let verdicts = mark.verdicts
    out.varint(verdicts.count)
    var index = 0
    var last = Position.beginning
    while index < verdicts.count {
      var end = index + 1
      while end < verdicts.count, verdicts[end].continues(verdicts[end - 1]) { end += 1 }
      run(verdicts[index], end - index, after: last)
      last = verdicts[end - 1].position ?? last
      index = end
    }
  }

  private mutating func run(_ first: Verdict, _ count: Int, after last: Position) {
    var tag = count << WireFlags.verdictShift | first.wireCode
    guard let position = first.position else {
      out.varint(tag)
      guard case .rejected(let rejection) = first else { return }
      text(rejection.code)
      text(rejection.message)
      return
    }
    let isOther = position.epoch != last.epoch
    if isOther { tag |= WireFlags.verdictOtherEpoch }
    out.varint(tag)
    if isOther { out.u64(position.epoch) }
    difference(position.offset, from: last.offset &+ 1)
  }
}
