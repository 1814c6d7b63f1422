internal import Tidemark
internal import TidemarkEngine

/// A change or a feed entry in a frame. A list of them has the heads of all, then the values of
/// all, since adjacent values compress best.
protocol WireRow {
  /// An empty row, into which a reader decodes.
  static var blank: Self { get }
  /// The least bytes of a head.
  static var leastBytes: Int { get }
  var content: SyncContent { get set }
  var isPut: Bool { get }
  mutating func visitHead(_ frame: inout FrameCursor, _ rows: inout RowState) throws(FormatError)
}

/// The previous row's numbers, as differences from which the next are coded, and all replica ids.
struct RowState {
  var sequence: UInt64 = 0
  var commitTime: UInt64 = 0
  var seconds: Int64 = 0
  var replicas = ReplicaTable()
}

extension FrameCursor {
  mutating func entries(_ entries: inout [FeedEntry]) throws(FormatError) {
    var state = RowState()
    if !isReading {
      for entry in entries { _ = state.replicas.insert(entry.operation.replica) }
    }
    try replicas(&state.replicas)
    try rows(&entries, &state)
    guard !isReading || state.replicas.isUsedUp else {
      throw FormatError("a replica without entry")
    }
  }

  private mutating func replicas(_ table: inout ReplicaTable) throws(FormatError) {
    var count = table.replicas.count
    try self.count(&count, atMost: WireLimits.rows, each: ReplicaID.byteCount)
    for index in 0..<count {
      var replica = isReading ? ReplicaID.none : table.replicas[index]
      try replica.code(&self)
      guard isReading else { continue }
      guard table.insert(replica) else { throw FormatError("a replica twice") }
    }
  }

  mutating func rows<R: WireRow>(
    _ rows: inout [R], _ state: inout RowState
  ) throws(FormatError) {
    var count = rows.count
    try self.count(&count, atMost: WireLimits.rows, each: R.leastBytes)
    var lengths: [Int] = []
    if isReading {
      rows.reserveCapacity(count)
      lengths.reserveCapacity(count)
    }
    for index in 0..<count {
      var row = isReading ? R.blank : rows[index]
      try row.visitHead(&self, &state)
      var length = row.content.value.count
      if row.isPut, row.content.blob == nil {
        try varint(&length, atMost: min(Limits.valueBytes, remaining))
      }
      guard isReading else { continue }
      lengths.append(length)
      rows.append(row)
    }
    for index in 0..<count {
      if isReading {
        if lengths[index] > 0 { try raw(&rows[index].content.value, count: lengths[index]) }
      } else {
        var value = rows[index].content.value
        try raw(&value, count: value.count)
      }
    }
  }

  /// The parts of the content that the flags say.
  fileprivate mutating func content(
    _ flags: Int, _ content: inout SyncContent, _ time: inout Timestamp?, _ state: inout RowState
  ) throws(FormatError) {
    if flags & WireFlags.labels != 0 {
      try contents(&content.labels, atMost: Limits.labelsPerEntry, each: 2)
      guard !content.labels.isEmpty else { throw FormatError("a list of no labels") }
    }
    if flags & WireFlags.hash != 0 {
      var hash = content.hash ?? []
      try bytes(&hash, atMost: Limits.hashBytes)
      content.hash = hash
    }
    if flags & WireFlags.maxAge != 0 {
      var seconds = Int(content.maxAgeSeconds ?? 0)
      try varint(&seconds, atMost: Int(UInt32.max))
      content.maxAgeSeconds = UInt32(seconds)
    }
    if flags & WireFlags.blob != 0 {
      var blob = content.blob ?? .blank
      try blob.code(&self)
      content.blob = blob
    }
    guard flags & WireFlags.time != 0 else { return }
    var seconds = UInt64(bitPattern: time?.seconds ?? 0)
    var nanoseconds = Int(time?.nanoseconds ?? 0)
    try difference(&seconds, from: UInt64(bitPattern: state.seconds))
    try varint(&nanoseconds, atMost: 999_999_999)
    state.seconds = Int64(bitPattern: seconds)
    time = Timestamp(seconds: state.seconds, nanoseconds: UInt32(nanoseconds))
  }

  /// The optional fields of a row, if it has any.
  fileprivate mutating func rowFields(
    _ flags: Int, _ attachment: inout AttachmentReference?, _ received: inout UInt64?
  ) throws(FormatError) {
    guard flags & WireFlags.optionalFields != 0 else { return }
    let list = try beginFields(atLeast: 1)
    if isReading ? has(1) : attachment != nil {
      let outer = beginField(1)
      var name = attachment ?? .blank
      try name.code(&self)
      try endField(1, outer)
      attachment = name
    }
    if isReading ? has(2) : received != nil {
      let outer = beginField(2)
      var time = received ?? 0
      try u64(&time)
      try endField(2, outer)
      received = time
    }
    try endFields(list)
  }
}

extension PushedChange: WireRow {
  static var blank: PushedChange {
    PushedChange(sequence: 0, kind: .put, key: [], commitTime: 0)
  }
  static var leastBytes: Int { 5 }
  var isPut: Bool { kind == .put }

  mutating func visitHead(_ frame: inout FrameCursor, _ rows: inout RowState) throws(FormatError) {
    var flags =
      WireFlags.flags(content, time) | (kind == .delete ? WireFlags.isDelete : 0)
      | baseCode(after: frame.last) << WireFlags.baseShift
      | (atomicGroup != 0 ? WireFlags.atomicGroup : 0)
    try frame.varint(&flags, atMost: WireFlags.all)
    kind = flags & WireFlags.isDelete == 0 ? .put : .delete
    try frame.difference(&sequence, from: rows.sequence &+ 1)
    rows.sequence = sequence
    try frame.difference(&commitTime, from: rows.commitTime)
    rows.commitTime = commitTime
    try frame.key(&key)
    try visitBase(&frame, flags >> WireFlags.baseShift & 3)
    try frame.content(flags, &content, &time, &rows)
    if flags & WireFlags.atomicGroup != 0 {
      try frame.varint(&atomicGroup)
      guard atomicGroup > 0 else { throw FormatError("an atomic group without number") }
    }
    var received: UInt64?
    try frame.rowFields(flags, &content.attachment, &received)
  }

  private func baseCode(after last: FeedPosition) -> Int {
    switch base {
    case .absent: WireFlags.baseAbsent
    case .position(let base):
      base.epoch == last.epoch ? WireFlags.baseInEpoch : WireFlags.baseInOtherEpoch
    case .operation: WireFlags.baseOperation
    }
  }

  private mutating func visitBase(_ frame: inout FrameCursor, _ code: Int) throws(FormatError) {
    switch code {
    case WireFlags.baseAbsent: base = .absent
    case WireFlags.baseOperation:
      var own: UInt64 = if case .operation(let own) = base { own } else { 0 }
      try frame.difference(&own, from: sequence)
      base = .operation(sequence: own)
    default:
      var position = if case .position(let base) = base { base } else { frame.last }
      let isOther = code == WireFlags.baseInOtherEpoch
      try frame.epoch(&position.epoch, isOther: isOther, than: frame.last.epoch)
      try frame.difference(&position.offset, from: frame.last.offset)
      base = .position(position)
      frame.last = position
    }
  }
}

extension FeedEntry: WireRow {
  package static var blank: FeedEntry {
    FeedEntry(
      position: .beginning, kind: .put, operation: OperationID(replica: .none, sequence: 0),
      key: [])
  }
  static var leastBytes: Int { 4 }
  var isPut: Bool { kind == .put }

  mutating func visitHead(_ frame: inout FrameCursor, _ rows: inout RowState) throws(FormatError) {
    var flags =
      Int(kind.rawValue) - 1 | WireFlags.flags(content, time)
      | (received != nil ? WireFlags.optionalFields : 0)
      | (position.epoch != frame.last.epoch ? WireFlags.otherEpoch : 0)
    if !frame.isReading, rows.replicas.select(operation.replica) { flags |= WireFlags.otherReplica }
    try frame.varint(&flags, atMost: WireFlags.all)
    kind = Kind(rawValue: UInt8(flags & WireFlags.kindMask) + 1) ?? .put
    let isOther = flags & WireFlags.otherEpoch != 0
    try frame.epoch(&position.epoch, isOther: isOther, than: frame.last.epoch)
    try frame.difference(&position.offset, from: frame.last.offset &+ 1)
    frame.last = position
    if flags & WireFlags.otherReplica != 0 {
      var index = rows.replicas.current
      try frame.varint(&index, atMost: WireLimits.rows)
      if frame.isReading { try rows.replicas.select(index: index) }
    }
    if frame.isReading { operation.replica = try rows.replicas.use() }
    try frame.difference(&operation.sequence, from: rows.replicas.sequence &+ 1)
    rows.replicas.sequence = operation.sequence
    try frame.difference(&commitTime, from: rows.commitTime)
    rows.commitTime = commitTime
    if kind != .own { try frame.key(&key) }
    try frame.content(flags, &content, &time, &rows)
    try frame.rowFields(flags, &content.attachment, &received)
  }
}
