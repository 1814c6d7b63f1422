internal import Tidemark
internal import TidemarkEngine

/// Reads messages in the binary coding, strictly: what it takes it would write the same way.
///
/// Every count is compared with the bytes that are left before anything is set aside for it. What
/// takes more memory than bytes, such as keys that share their beginning, has a budget.
struct WireReader: ~Escapable {
  var bytes: ByteReader
  /// Whether optional fields are refused: nothing that a caller asks for is left undone silently.
  let isRequest: Bool
  /// The last position, from which the next is counted.
  var last = Position.beginning
  /// The last key, whose beginning the next may share.
  private var lastKey: [UInt8] = []
  private var keyBudget: Int

  @_lifetime(copy span)
  init(_ span: RawSpan, isRequest: Bool, budget: Int) {
    bytes = ByteReader(span)
    self.isRequest = isRequest
    keyBudget = budget
  }

  mutating func message(_ kind: WireMessage.Kind) throws(FormatError) -> WireMessage {
    let fields = try optionalFields(atLeast: 0, known: kind.optionalFields)
    let reach = try fields[WireFlags.reachField].map(Self.word)
    let message: WireMessage =
      switch kind {
      case .helloRequest: .helloRequest(try helloRequest())
      case .helloAnswer: .helloAnswer(try helloAnswer(reach, fields))
      case .pushRequest: .pushRequest(try pushRequest(reach, fields))
      case .pushAnswer: .pushAnswer(try pushAnswer())
      case .pullRequest: .pullRequest(try pullRequest())
      case .pullAnswer: .pullAnswer(try pullAnswer(reach))
      case .valuesRequest: .valuesRequest(try valuesRequest())
      case .valuesAnswer: .valuesAnswer(try valuesAnswer(reach))
      case .digestRequest: .digestRequest(try digestRequest())
      case .digestAnswer: .digestAnswer(try digestAnswer(reach))
      case .downloadRequest: .downloadRequest(try downloadRequest())
      case .downloadAnswer: .downloadAnswer(try downloadAnswer())
      case .attachRequest: .attachRequest(try attachRequest())
      case .attachAnswer: .attachAnswer(try attachAnswer())
      case .fetchRequest: .fetchRequest(try fetchRequest())
      case .fetchAnswer: .fetchAnswer(try fetchAnswer())
      case .error: .error(try error())
      }
    guard bytes.remaining == 0 else { throw FormatError("bytes after the message") }
    return message
  }

  // MARK: Parts

  /// A count of rows of at least so many bytes each.
  mutating func count(_ limit: Int, each size: Int) throws(FormatError) -> Int {
    let count = try bytes.varint(atMost: limit)
    guard count <= bytes.remaining / size else { throw FormatError("ends too early") }
    return count
  }

  /// An optional field of eight bytes.
  static func word(_ field: [UInt8]) throws(FormatError) -> UInt64 {
    var reader = ByteReader(field.rawSpan)
    let word = try reader.u64()
    guard reader.remaining == 0 else { throw FormatError("a field of more than eight bytes") }
    return word
  }

  /// A list of number, length and bytes; answers may have some of a later version, which are
  /// passed over.
  /// - Parameter known: the numbers of those that are known.
  /// - Returns: the contents of these, as far as they are there.
  mutating func optionalFields(
    atLeast least: Int, known: [UInt64]
  ) throws(FormatError) -> [UInt64: [UInt8]] {
    var found: [UInt64: [UInt8]] = [:]
    let length = try bytes.varint(atMost: WireLimits.optionalBytes)
    guard length >= least else { throw FormatError("no optional fields where some should be") }
    guard length <= bytes.remaining else { throw FormatError("ends too early") }
    let end = bytes.offset + length
    var previous: UInt64 = 0
    while bytes.offset < end {
      let number = try bytes.varint()
      guard number > previous else { throw FormatError("optional fields are not in order") }
      previous = number
      let size = try bytes.varint(atMost: length)
      if known.contains(number) {
        found[number] = try bytes.array(size)
      } else {
        guard !isRequest else { throw FormatError("fields that are not known here") }
        _ = try bytes.skip(size)
      }
    }
    guard bytes.offset == end else { throw FormatError("optional fields end too late") }
    return found
  }

  mutating func replica() throws(FormatError) -> ReplicaID {
    guard let replica = ReplicaID(try bytes.array(ReplicaID.byteCount)) else {
      throw FormatError("no replica")
    }
    return replica
  }

  mutating func flags(_ known: UInt8) throws(FormatError) -> UInt8 {
    let flags = try bytes.u8()
    guard flags & ~known == 0 else { throw FormatError("flags that are not known here") }
    return flags
  }

  mutating func u32() throws(FormatError) -> UInt32 {
    UInt32(try bytes.varint(atMost: Int(UInt32.max)))
  }

  mutating func text(atMost limit: Int) throws(FormatError) -> String {
    let content = try bytes.array(try bytes.varint(atMost: limit))
    guard let text = String(validating: content, as: UTF8.self) else {
      throw FormatError("a text is not UTF-8")
    }
    return text
  }

  mutating func position() throws(FormatError) -> Position {
    last = try Position(from: &bytes)
    return last
  }

  /// An epoch that must not be the last one, since that is coded shorter.
  mutating func otherEpoch(than last: UInt64) throws(FormatError) -> UInt64 {
    let epoch = try bytes.u64()
    guard epoch != last else { throw FormatError("the same epoch again") }
    return epoch
  }

  /// A number that was counted from another one.
  @inline(__always)
  mutating func number(from other: UInt64) throws(FormatError) -> UInt64 {
    other &+ UInt64(bitPattern: try bytes.zigzag())
  }

  /// A key that may share the beginning of the last one.
  mutating func key() throws(FormatError) -> [UInt8] {
    let shared = try bytes.varint(atMost: lastKey.count)
    let rest = try bytes.varint(atMost: Limits.keyBytes - shared)
    keyBudget -= shared + rest
    guard keyBudget >= 0 else { throw FormatError("keys are longer than a message may be") }
    let tail = try bytes.bytes.slice(try bytes.skip(rest), rest)
    if rest > 0, shared < lastKey.count, try tail.u8(at: 0) == lastKey[shared] {
      throw FormatError("a key shares more with the last one than it says")
    }
    if shared == 0 {
      lastKey = [UInt8](copying: tail)
    } else {
      var key: [UInt8] = []
      key.reserveCapacity(shared + rest)
      key.append(contentsOf: lastKey[..<shared])
      key.append(copying: tail)
      lastKey = key
    }
    return lastKey
  }

  mutating func labels(_ limit: Int) throws(FormatError) -> [EntryLabel] {
    let count = try count(limit, each: 2)
    var labels: [EntryLabel] = []
    labels.reserveCapacity(count)
    for _ in 0..<count {
      labels.append(EntryLabel(try bytes.array(try bytes.varint(atMost: Limits.labelBytes))))
    }
    return labels
  }

  mutating func scope() throws(FormatError) -> SyncScope {
    let labels = try labels(WireLimits.scopeRows)
    let count = try count(WireLimits.scopeRows, each: 1)
    // The scope makes a table of all of them, and that once.
    var prefixes: [[UInt8]] = []
    prefixes.reserveCapacity(count)
    for _ in 0..<count {
      prefixes.append(try bytes.array(try bytes.varint(atMost: Limits.keyBytes)))
    }
    return SyncScope(labels: labels, prefixBytes: prefixes)
  }

  mutating func limits() throws(FormatError) -> SyncLimits {
    SyncLimits(
      changes: try bytes.varint(atMost: WireLimits.statedLimit),
      bytes: try bytes.varint(atMost: WireLimits.statedLimit))
  }

  mutating func range() throws(FormatError) -> FeedRange {
    let count = try count(Limits.epochs, each: 9)
    var epochs: [FeedEpoch] = []
    epochs.reserveCapacity(count)
    var first: UInt64 = 0
    for _ in 0..<count {
      let epoch = try bytes.u64()
      let (sum, overflow) = first.addingReportingOverflow(try bytes.varint())
      guard !overflow else { throw FormatError("an offset is out of bounds") }
      first = sum
      epochs.append(FeedEpoch(epoch: epoch, firstOffset: first))
    }
    return FeedRange(
      epochs: epochs, head: try bytes.varint(), truncatedThrough: try bytes.varint())
  }
}

extension WireMessage.Kind {
  /// The numbers of the optional fields that it may have.
  fileprivate var optionalFields: [UInt64] {
    switch self {
    case .helloAnswer:
      [WireFlags.reachField, WireFlags.attachmentBytesField, WireFlags.policiesField]
    case .pushRequest: [WireFlags.reachField, WireFlags.previousBatchField]
    case .pullAnswer, .valuesAnswer, .digestAnswer: [WireFlags.reachField]
    default: []
    }
  }
}
