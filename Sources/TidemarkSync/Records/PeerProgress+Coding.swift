package import TidemarkEngine
package import TidemarkSyncProtocol

/// The encoding of the progress in two parts: the *basis*, a record that seldom changes, and the
/// *step*, a small difference to it in every commit. The bytes are in `HowReplicationWorks.md`.
extension PeerProgress {
  /// The id that a batch of a number has unless the step says otherwise.
  func usualID(_ number: UInt64) -> BatchID {
    number == 0 ? .none : BatchID(head.seed, number)
  }

  /// The parts of a basis that a step refers to.
  struct Basis: Sendable, Hashable {
    var head = Head()
    var epoch: UInt64 = 0
    var pending = SequenceSet()
    /// Checksum of its bytes, so that a step is never applied to another basis.
    private(set) var sum: UInt64 = 0

    mutating func note(_ bytes: RawSpan) { sum = XXH64.hash(bytes, seed: 0) & 0xffff_ffff }
  }

  /// Whether the pending runs differ so much from a basis's that a new one saves bytes.
  ///
  /// Steps repeat the difference, which grows from step to step; a basis costs its size once. The
  /// sum of both per step is least if a basis is written when the square of the difference is a
  /// multiple of the basis's size; a step then costs about the root of that size.
  func isFar(from basis: Basis) -> Bool {
    let difference = outbox.pending.symmetricDifference(basis.pending)
    guard !difference.isEmpty else { return false }
    let bytes = difference.encodedBytes
    return bytes > 32 && bytes * bytes > 8 * outbox.pending.encodedBytes
  }

  /// - Parameter basis: the basis that was written last.
  mutating func code(_ record: inout FrameCursor, upon basis: Basis) throws(FormatError) {
    // Steps do not have it, and the usual id depends on it.
    head = basis.head
    try record.version(11)
    try record.varint(&cursor.offset)
    try record.difference(&furthest.offset, from: cursor.offset)
    try record.varint(&number)
    var (frontier, batchLimit, sum) = (outbox.frontier, outbox.batchLimit, basis.sum)
    try record.varint(&frontier)
    // Fields that have their usual value are left out of a record of progress, and a byte of flags
    // says which are there: each edit writes such a record, and few have any of these fields.
    var runs =
      record.isReading ? SequenceSet() : outbox.pending.symmetricDifference(basis.pending)
    try record.flags(0xff)
    try record.varint(&cursor.epoch, flag: 1, usually: basis.epoch)
    try record.varint(&furthest.epoch, flag: 2, usually: basis.epoch)
    try record.varint(&batchID.bits, flag: 4, usually: usualID(number).bits)
    try record.varint(&batchLimit, flag: 8)
    try record.varint(&possiblyKnownThrough, flag: 16)
    try record.varint(&renamedThrough, flag: 32)
    var isComparing = comparedThrough != .beginning
    record.flag(64, &isComparing)
    if isComparing { try comparedThrough.code(&record) }
    var hasMore =
      !runs.isEmpty || !basis.pending.isEmpty || !resumption.isEmpty || resync != nil
    record.flag(128, &hasMore)
    if hasMore {
      try record.runs(&runs)
      try record.varint(&sum)
      try record.bytes(&resumption, atMost: .max)
      var isResyncing = resync != nil
      try record.flags(1)
      record.flag(1, &isResyncing)
      if isResyncing {
        var work = resync ?? Resync()
        try work.code(&record)
        resync = work
      }
    }
    guard hasMore ? sum == basis.sum : basis.pending.isEmpty else {
      throw FormatError("a peer's progress is for another basis")
    }
    guard record.isReading else { return }
    let pending = runs.symmetricDifference(basis.pending)
    guard frontier < .max, pending.first != 0, pending.last ?? 0 < .max else {
      throw FormatError("pending entries with impossible numbers")
    }
    outbox = Outbox(frontier: frontier, pending: pending, batchLimit: batchLimit)
  }
}

extension PeerProgress.Basis: StoredRecord {
  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.version(11)
    var feed = head.feed?.bytes ?? []
    try record.bytes(&feed, atMost: ReplicaID.byteCount)
    head.feed = ReplicaID(feed)
    try record.u64(&head.scope)
    try record.u64(&head.reach)
    try record.u64(&epoch)
    try head.name.code(&record)
    try record.u64(&head.seed)
    var count = head.epochs.count
    try record.count(&count, atMost: .max, each: 9)
    for index in 0..<count {
      var epoch = record.isReading ? FeedEpoch(epoch: 0, firstOffset: 0) : head.epochs[index]
      try record.u64(&epoch.epoch)
      try record.varint(&epoch.firstOffset)
      guard epoch.firstOffset >= (index > 0 ? head.epochs[index - 1].firstOffset : 1) else {
        throw FormatError("a feed's epochs are not in order")
      }
      if record.isReading { head.epochs.append(epoch) }
    }
    try record.runs(&pending)
  }
}

extension SequenceSet {
  fileprivate var encodedBytes: Int {
    var writer = ByteWriter()
    encode(into: &writer)
    return writer.bytes.count
  }
}

extension WaitReason: StoredRecord {
  package init() { self = .needsDecision }

  package mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    var kind: UInt8 =
      switch self {
      case .conflict: 1
      case .lost: 2
      case .parked: 3
      case .needsDecision: 4
      }
    try record.u8(&kind)
    switch kind {
    case 1, 2:
      var position = position ?? .beginning
      try position.code(&record)
      self = kind == 1 ? .conflict(position) : .lost(position)
    case 3:
      var rejection = SyncRejection(code: "", message: "")
      if case .parked(let told) = self { rejection = told }
      try record.text(&rejection.code)
      try record.text(&rejection.message)
      self = .parked(rejection)
    case 4: self = .needsDecision
    default: throw FormatError("unknown reason for waiting")
    }
  }
}

/// What every commit saves of a peer: the progress's step, the batch in flight, the newest
/// positions and the retention pin. All are in the pin's record, so that an edit sent by itself
/// costs one record; compaction reads only the pin, the first part. The bytes are in
/// `HowReplicationWorks.md`.
struct PeerState: StoredRecord {
  var progress = PeerProgress()
  var basis = PeerProgress.Basis()
  var batch: OutgoingBatch?
  /// The newest runs of `acknowledged`, which are not in its own records yet.
  var tail: [AcknowledgedRun] = []
  var acknowledged = AcknowledgedRuns()
  var pin: RetentionPin?

  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try progress.code(&record, upon: basis)
    var isSending = batch != nil
    try record.flags(1)
    record.flag(1, &isSending)
    if isSending {
      var some = batch ?? OutgoingBatch(number: 0, batchID: .none, items: [])
      try some.code(&record, progress, basis.epoch)
      batch = some
    }
    var runs = record.isReading ? [] : AcknowledgedRunsCoding.encode(tail[...], epoch: basis.epoch)
    try record.bytes(&runs, atMost: .max)
    if record.isReading { tail = try AcknowledgedRunsCoding.decode(runs, epoch: basis.epoch) }
  }

  /// The value of the step's record.
  static func encode(
    _ progress: PeerProgress, _ basis: PeerProgress.Basis, _ batch: OutgoingBatch?,
    _ tail: [AcknowledgedRun], _ pin: RetentionPin
  ) throws(TidemarkError) -> [UInt8] {
    let state = PeerState(progress: progress, basis: basis, batch: batch, tail: tail)
    return pin.record(before: try state.encoded())
  }

  /// Decodes the pin's record after the pin.
  static func decode(_ value: RawSpan, basis: RawSpan) throws(FormatError) -> PeerState {
    var state = PeerState()
    state.basis = try PeerProgress.Basis(decoding: basis)
    state.basis.note(basis)
    try state.decode(value)
    return state
  }
}

/// A batch with its number, saved before it is sent: a retry after a crash sends the same batch.
package struct OutgoingBatch: Sendable, Hashable {
  package struct Item: Sendable, Hashable {
    package var sequence: UInt64
    /// The version in this peer's feed that it was made upon.
    package var base: ChangeBase
  }

  package var number: UInt64
  package var batchID: BatchID
  package var items: [Item]

  /// The bytes as in `HowReplicationWorks.md`.
  mutating func code(
    _ record: inout FrameCursor, _ progress: PeerProgress, _ epoch: UInt64
  ) throws(FormatError) {
    try record.difference(&number, from: progress.number)
    let usual = progress.usualID(number)
    var bits = UInt64(items.count) << 1 | (batchID == usual ? 0 : 1)
    try record.varint(&bits)
    if bits & 1 != 0 { try record.u64(&batchID.bits) } else { batchID = usual }
    let count = Int(clamping: bits >> 1)
    guard count <= record.remaining / 2 else { throw FormatError("more changes than bytes") }
    if record.isReading { items.reserveCapacity(count) }
    var last = progress.outbox.frontier
    let place = FeedPosition(epoch: epoch, offset: progress.cursor.offset)
    for index in 0..<count {
      var item = record.isReading ? Item(sequence: 0, base: .absent) : items[index]
      try record.difference(&item.sequence, from: last)
      try item.base.code(&record, place)
      last = item.sequence
      if record.isReading { items.append(item) }
    }
  }

  var sequences: SequenceSet {
    items.reduce(into: SequenceSet()) { $0.insert($1.sequence) }
  }
}

extension ChangeBase {
  /// - Parameter place: positions of its epoch are coded without it, with the distance of the
  ///   offset.
  mutating func code(_ record: inout FrameCursor, _ place: FeedPosition) throws(FormatError) {
    var (kind, position, sequence): (UInt8, FeedPosition, UInt64) = (0, place, 0)
    switch self {
    case .absent: break
    case .position(let base): (kind, position) = (base.epoch == place.epoch ? 3 : 1, base)
    case .operation(let own): (kind, sequence) = (2, own)
    }
    try record.u8(&kind)
    switch kind {
    case 0: return self = .absent
    case 1: try position.code(&record)
    case 2:
      try record.varint(&sequence)
      return self = .operation(sequence: sequence)
    case 3: try record.difference(&position.offset, from: place.offset)
    default: throw FormatError("unknown kind of base")
    }
    self = .position(position)
  }
}

/// Generates batch ids from a random seed and the batch's number, so that usual ids need not be
/// saved. Every session draws a seed, and another one before it uses a number again: equal number
/// and id mean the same batch.
struct BatchNaming {
  private(set) var seed: UInt64 = 0
  private var last: UInt64 = .max

  /// The id of a batch to be formed; another one at each call.
  /// - Parameter random: draws a seed.
  mutating func next(_ number: UInt64, _ random: () -> UInt64) -> BatchID {
    if number <= last { seed = random() }
    last = number
    return BatchID(seed, number)
  }
}

extension BatchID {
  /// The id of a batch of this number with this seed.
  init(_ seed: UInt64, _ number: UInt64) {
    var bits = seed ^ number &* 0x9e37_79b9_7f4a_7c15
    bits = (bits ^ bits >> 30) &* 0xbf58_476d_1ce4_e5b9
    bits = (bits ^ bits >> 27) &* 0x94d0_49bb_1331_11eb
    // With the lowest bit set, its complement is no batch's id: it is that of the empty batch.
    self.init((bits ^ bits >> 31) | 1)
  }

  /// The id of the empty batch that is sent instead if this one is given up. No other batch has it:
  /// the lowest bit of their ids is set.
  var ofEmpty: BatchID { BatchID(~bits) }
}
