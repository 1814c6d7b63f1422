internal import Tidemark
internal import TidemarkEngine

/// Changes and feed entries: first the heads of all, then the values of all, since values that
/// stand together compress best.
extension WireWriter {
  mutating func write(_ request: PushRequest) throws(FormatError) {
    replica(request.replica)
    out.varint(request.number)
    out.u64(request.batchID.bits)
    position(request.knownHead)
    out.varint(request.changes.count)
    var numbers = EntryNumbers()
    // Over the span no change is copied.
    let changes = request.changes.span
    for index in changes.indices { try head(changes[index], &numbers) }
    for index in changes.indices { out.raw(changes[index].content.value) }
  }

  private mutating func head(
    _ change: PushedChange, _ numbers: inout EntryNumbers
  ) throws(FormatError) {
    var flags = change.kind == .delete ? WireFlags.isDelete : 0
    switch change.base {
    case .absent: break
    case .position(let base):
      let isOther = base.epoch != last.epoch
      flags |=
        (isOther ? WireFlags.baseInOtherEpoch : WireFlags.baseInEpoch) << WireFlags.baseShift
    case .operation: flags |= WireFlags.baseOperation << WireFlags.baseShift
    }
    flags |= self.flags(change.content, change.time)
    if change.atomicGroup != 0 { flags |= WireFlags.atomicGroup }
    out.varint(flags)
    difference(change.sequence, from: numbers.sequence &+ 1)
    numbers.sequence = change.sequence
    difference(change.commitTime, from: numbers.commitTime)
    numbers.commitTime = change.commitTime
    try key(change.key)
    switch change.base {
    case .absent: break
    case .position(let base):
      if base.epoch != last.epoch { out.u64(base.epoch) }
      difference(base.offset, from: last.offset)
      last = base
    case .operation(let sequence): difference(sequence, from: change.sequence)
    }
    content(change.content, change.time, &numbers)
    if change.atomicGroup != 0 { out.varint(change.atomicGroup) }
    entryFields(change.content.attachment)
    if change.kind == .put, change.content.blob == nil {
      out.varint(change.content.value.count)
    }
  }

  mutating func write(_ entries: [FeedEntry]) throws(FormatError) {
    var table = ReplicaTable()
    for entry in entries { table.insert(entry.operation.replica) }
    out.varint(table.replicas.count)
    for replica in table.replicas { self.replica(replica) }
    out.varint(entries.count)
    var numbers = EntryNumbers()
    for entry in entries { try head(entry, &table, &numbers) }
    for entry in entries { out.raw(entry.content.value) }
  }

  private mutating func head(
    _ entry: FeedEntry, _ table: inout ReplicaTable, _ numbers: inout EntryNumbers
  ) throws(FormatError) {
    let isOtherEpoch = entry.position.epoch != last.epoch
    let isOtherReplica = table.select(entry.operation.replica)
    var flags = Int(entry.kind.rawValue) - 1 | self.flags(entry.content, entry.time)
    if entry.received != nil { flags |= WireFlags.optionalFields }
    if isOtherEpoch { flags |= WireFlags.otherEpoch }
    if isOtherReplica { flags |= WireFlags.otherReplica }
    out.varint(flags)
    if isOtherEpoch { out.u64(entry.position.epoch) }
    difference(entry.position.offset, from: last.offset &+ 1)
    last = entry.position
    if isOtherReplica { out.varint(table.current) }
    difference(entry.operation.sequence, from: table.sequence &+ 1)
    table.sequence = entry.operation.sequence
    difference(entry.commitTime, from: numbers.commitTime)
    numbers.commitTime = entry.commitTime
    if entry.kind != .own { try key(entry.key) }
    content(entry.content, entry.time, &numbers)
    entryFields(entry.content.attachment, received: entry.received)
    if entry.kind == .put, entry.content.blob == nil { out.varint(entry.content.value.count) }
  }

  private func flags(_ content: SyncContent, _ time: Timestamp?) -> Int {
    (content.labels.isEmpty ? 0 : WireFlags.labels) | (content.hash == nil ? 0 : WireFlags.hash)
      | (content.maxAgeSeconds == nil ? 0 : WireFlags.maxAge) | (time == nil ? 0 : WireFlags.time)
      | (content.blob == nil ? 0 : WireFlags.blob)
      | (content.attachment == nil ? 0 : WireFlags.optionalFields)
  }

  /// The content, as the flags say.
  private mutating func content(
    _ content: SyncContent, _ time: Timestamp?, _ numbers: inout EntryNumbers
  ) {
    if !content.labels.isEmpty { labels(content.labels) }
    if let hash = content.hash { bytes(hash) }
    if let seconds = content.maxAgeSeconds { out.varint(UInt64(seconds)) }
    if let blob = content.blob { write(blob) }
    if let time {
      out.zigzag(time.seconds &- numbers.seconds)
      out.varint(UInt64(time.nanoseconds))
      numbers.seconds = time.seconds
    }
  }
}

/// The numbers of the entry before, from which the next are counted.
struct EntryNumbers {
  var sequence: UInt64 = 0
  var commitTime: UInt64 = 0
  var seconds: Int64 = 0
}

/// The replicas that a page names, in the order of their first use, and the last sequence of each.
struct ReplicaTable {
  private(set) var replicas: [ReplicaID] = []
  private var indices: [ReplicaID: Int] = [:]
  private var sequences: [UInt64] = []
  /// Which one wrote the entry before; 0 at first.
  private(set) var current = 0
  /// How many of them were used so far.
  private var used = 0

  mutating func insert(_ replica: ReplicaID) {
    if let last = replicas.last, last == replica { return }
    guard indices[replica] == nil else { return }
    indices[replica] = replicas.count
    replicas.append(replica)
    sequences.append(0)
  }

  /// Whether a replica is not known yet.
  func isNew(_ replica: ReplicaID) -> Bool { indices[replica] == nil }

  /// Makes a replica the current one.
  /// - Returns: whether it was not before.
  mutating func select(_ replica: ReplicaID) -> Bool {
    if replicas[current] == replica { return false }
    current = indices[replica] ?? current
    return true
  }

  /// Makes another one the current one, if they come in order.
  mutating func select(index: Int) throws(FormatError) {
    guard index < replicas.count, index != current, index <= used else {
      throw FormatError("replicas are not in the order of their first use")
    }
    current = index
  }

  /// Notes that the current one was used.
  mutating func use() throws(FormatError) {
    guard current < replicas.count else { throw FormatError("an entry without replica") }
    used = max(used, current + 1)
  }

  /// Whether every one was used.
  var isUsedUp: Bool { used == replicas.count }

  /// The last sequence of the current one.
  var sequence: UInt64 {
    get { sequences[current] }
    set { sequences[current] = newValue }
  }

  var replica: ReplicaID { replicas[current] }
}
