internal import Tidemark
internal import TidemarkEngine

/// Changes and feed entries; see the writer.
extension WireReader {
  mutating func pushRequest(
    _ reach: UInt64?, _ fields: [UInt64: [UInt8]]
  ) throws(FormatError) -> PushRequest {
    let previous = try fields[WireFlags.previousBatchField].map(Self.word)
    var request = PushRequest(
      replica: try replica(), number: try bytes.varint(), batchID: BatchID(try bytes.u64()),
      previousBatchID: previous.map { BatchID($0) },
      knownHead: try position(), reach: reach, changes: [])
    let count = try count(WireLimits.rows, each: 5)
    request.changes.reserveCapacity(count)
    var lengths: [Int] = []
    lengths.reserveCapacity(count)
    var numbers = EntryNumbers()
    for _ in 0..<count {
      let change = try change(&numbers)
      lengths.append(try inlineLength(change.kind == .put, change.content))
      request.changes.append(change)
    }
    for index in 0..<count where lengths[index] > 0 {
      request.changes[index].content.value = try bytes.array(lengths[index])
    }
    return request
  }

  /// How long the value is that stands behind the heads.
  private mutating func inlineLength(
    _ isPut: Bool, _ content: SyncContent
  ) throws(FormatError) -> Int {
    guard isPut, content.blob == nil else { return 0 }
    return try bytes.varint(atMost: min(Limits.valueBytes, bytes.remaining))
  }

  private mutating func change(_ numbers: inout EntryNumbers) throws(FormatError) -> PushedChange {
    let flags = try bytes.varint(atMost: WireFlags.all)
    numbers.sequence = try number(from: numbers.sequence &+ 1)
    numbers.commitTime = try number(from: numbers.commitTime)
    var change = PushedChange(
      sequence: numbers.sequence, kind: flags & WireFlags.isDelete == 0 ? .put : .delete,
      key: try key(), commitTime: numbers.commitTime)
    switch flags >> WireFlags.baseShift & 3 {
    case WireFlags.baseAbsent: break
    case WireFlags.baseOperation:
      change.base = .operation(sequence: try number(from: numbers.sequence))
    case let code:
      if code == WireFlags.baseInOtherEpoch { last.epoch = try otherEpoch(than: last.epoch) }
      last.offset = try number(from: last.offset)
      change.base = .position(last)
    }
    change.time = try content(flags, &change.content, &numbers)
    if flags & WireFlags.atomicGroup != 0 {
      change.atomicGroup = try bytes.varint()
      guard change.atomicGroup > 0 else { throw FormatError("an atomic group without number") }
    }
    let fields = try optionalFields(flags, known: [WireFlags.attachmentField])
    change.content.attachment = try attachment(fields)
    return change
  }

  mutating func entries() throws(FormatError) -> [FeedEntry] {
    var table = try replicaTable()
    let count = try count(WireLimits.rows, each: 4)
    var entries: [FeedEntry] = []
    entries.reserveCapacity(count)
    var lengths: [Int] = []
    lengths.reserveCapacity(count)
    var numbers = EntryNumbers()
    for _ in 0..<count {
      let entry = try entry(&table, &numbers)
      lengths.append(try inlineLength(entry.kind == .put, entry.content))
      entries.append(entry)
    }
    guard table.isUsedUp else { throw FormatError("a replica without entry") }
    for index in 0..<count where lengths[index] > 0 {
      entries[index].content.value = try bytes.array(lengths[index])
    }
    return entries
  }

  private mutating func replicaTable() throws(FormatError) -> ReplicaTable {
    var table = ReplicaTable()
    for _ in 0..<(try count(WireLimits.rows, each: ReplicaID.byteCount)) {
      let replica = try replica()
      guard table.isNew(replica) else { throw FormatError("a replica twice") }
      table.insert(replica)
    }
    return table
  }

  private mutating func entry(
    _ table: inout ReplicaTable, _ numbers: inout EntryNumbers
  ) throws(FormatError) -> FeedEntry {
    let flags = try bytes.varint(atMost: WireFlags.all)
    guard let kind = FeedEntry.Kind(rawValue: UInt8(flags & WireFlags.kindMask) + 1) else {
      throw FormatError("an entry's kind is not known here")
    }
    if flags & WireFlags.otherEpoch != 0 { last.epoch = try otherEpoch(than: last.epoch) }
    last.offset = try number(from: last.offset &+ 1)
    if flags & WireFlags.otherReplica != 0 {
      try table.select(index: try bytes.varint(atMost: WireLimits.rows))
    }
    try table.use()
    table.sequence = try number(from: table.sequence &+ 1)
    numbers.commitTime = try number(from: numbers.commitTime)
    var entry = FeedEntry(
      position: last, kind: kind,
      operation: OperationID(replica: table.replica, sequence: table.sequence),
      key: kind == .own ? [] : try key(), commitTime: numbers.commitTime)
    entry.time = try content(flags, &entry.content, &numbers)
    let fields = try optionalFields(
      flags, known: [WireFlags.attachmentField, WireFlags.receivedField])
    entry.content.attachment = try attachment(fields)
    entry.received = try fields[WireFlags.receivedField].map(Self.word)
    return entry
  }

  /// An entry's optional fields, if its flags say that there are any.
  private mutating func optionalFields(
    _ flags: Int, known: [UInt64]
  ) throws(FormatError) -> [UInt64: [UInt8]] {
    guard flags & WireFlags.optionalFields != 0 else { return [:] }
    return try optionalFields(atLeast: 1, known: known)
  }

  private func attachment(
    _ fields: [UInt64: [UInt8]]
  ) throws(FormatError) -> AttachmentReference? {
    guard let field = fields[WireFlags.attachmentField] else { return nil }
    return try AttachmentReference(field: field)
  }

  /// The content, as the flags say.
  /// - Returns: the entry's own time.
  private mutating func content(
    _ flags: Int, _ content: inout SyncContent, _ numbers: inout EntryNumbers
  ) throws(FormatError) -> Timestamp? {
    if flags & WireFlags.labels != 0 {
      content.labels = try labels(Limits.labelsPerEntry)
      guard !content.labels.isEmpty else { throw FormatError("a list of no labels") }
    }
    if flags & WireFlags.hash != 0 {
      content.hash = try bytes.array(try bytes.varint(atMost: Limits.hashBytes))
    }
    if flags & WireFlags.maxAge != 0 { content.maxAgeSeconds = try u32() }
    if flags & WireFlags.blob != 0 { content.blob = try attachment() }
    guard flags & WireFlags.time != 0 else { return nil }
    numbers.seconds = numbers.seconds &+ (try bytes.zigzag())
    return Timestamp(
      seconds: numbers.seconds, nanoseconds: UInt32(try bytes.varint(atMost: 999_999_999)))
  }
}
