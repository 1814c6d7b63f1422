internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The encoding of the progress in two parts: the *basis*, a record that seldom changes, and the
/// *step*, a small difference to it in every commit. The bytes are in `HowReplicationWorks.md`.
extension PeerProgress {
  private static let version: UInt8 = 8
  /// More zeros than can be left out at the end of a step.
  private static let mostZeros = 96

  /// The id that a batch of a number has unless the step says otherwise.
  func usualID(_ number: UInt64) -> BatchID {
    number == 0 ? .none : BatchID(seed, number)
  }

  /// The parts of a basis that a step refers to.
  struct Basis: Sendable, Hashable {
    var epoch: UInt64 = 0
    var pending = SequenceSet()
    /// Its bytes before the pending runs.
    private(set) var head: [UInt8] = []
    /// Checksum of its bytes, so that a step is never applied to another basis.
    var sum: UInt32 = 0

    mutating func note(_ bytes: RawSpan) {
      head = [UInt8](copying: bytes).dropLast(pending.encodedBytes)
      sum = UInt32(truncatingIfNeeded: XXH64.hash(bytes, seed: 0))
    }
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

  func encodedBasis(_ basis: Basis) -> [UInt8] {
    var writer = ByteWriter()
    writer.bytes = encodedHead(basis.epoch)
    basis.pending.encode(into: &writer)
    return writer.bytes
  }

  /// The part of a basis before its pending runs.
  func encodedHead(_ epoch: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.u8(feed == nil ? 0 : 1)
    if let feed { writer.bytes.append(contentsOf: feed.bytes) }
    writer.u64(scope)
    writer.u64(reach)
    writer.u64(epoch)
    writer.bytes.append(contentsOf: name.bytes)
    writer.u64(seed)
    writer.u8(UInt8(clamping: epochs.count))
    for epoch in epochs {
      writer.u64(epoch.epoch)
      writer.varint(epoch.firstOffset)
    }
    return writer.bytes
  }

  /// - Parameter basis: the basis that was written last.
  func encodedStep(_ basis: Basis) -> [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.varint(cursor.offset)
    writer.zigzag(Int64(bitPattern: furthest.offset &- cursor.offset))
    writer.varint(number)
    writer.varint(outbox.frontier)
    let difference = outbox.pending.symmetricDifference(basis.pending)
    let parts: UInt8 =
      (difference.isEmpty ? 0 : 1) | (resumption.isEmpty ? 0 : 2) | (resync == nil ? 0 : 4)
    var end = writer.bytes.count
    writer.varint(heardThrough)
    writer.u8(parts)
    if !difference.isEmpty { difference.encode(into: &writer) }
    if !resumption.isEmpty { writer.blob(resumption) }
    resync?.encode(into: &writer)
    if parts != 0 { end = writer.bytes.count }
    writer.varint(cursor.epoch ^ basis.epoch)
    writer.varint(furthest.epoch ^ basis.epoch)
    writer.varint(batchID.bits ^ usualID(number).bits)
    writer.varint(outbox.batchLimit)
    writer.varint(comparedThrough.epoch)
    writer.varint(comparedThrough.offset)
    writer.varint(renamedThrough)
    writer.u32(difference.isEmpty && basis.pending.isEmpty ? 0 : basis.sum)
    while writer.bytes.count > end, writer.bytes.last == 0 { writer.bytes.removeLast() }
    return writer.bytes
  }

  static func decode(
    basis bytes: RawSpan, step: RawSpan
  ) throws(FormatError) -> (progress: PeerProgress, basis: Basis) {
    var progress = PeerProgress()
    var basis = Basis()
    var reader = ByteReader(bytes)
    try reader.version(version)
    if try reader.u8() & 1 != 0 {
      progress.feed = ReplicaID(padding: try reader.array(ReplicaID.byteCount))
    }
    progress.scope = try reader.u64()
    progress.reach = try reader.u64()
    basis.epoch = try reader.u64()
    progress.name = ReplicaID(padding: try reader.array(ReplicaID.byteCount))
    progress.seed = try reader.u64()
    for _ in 0..<Int(try reader.u8()) {
      let epoch = FeedEpoch(epoch: try reader.u64(), firstOffset: try reader.varint())
      guard epoch.firstOffset >= progress.epochs.last?.firstOffset ?? 1 else {
        throw FormatError("a feed's epochs are not in order")
      }
      progress.epochs.append(epoch)
    }
    basis.pending = try SequenceSet(from: &reader)
    guard reader.remaining == 0 else { throw FormatError("bytes after a peer's basis") }
    basis.note(bytes)
    let whole = [UInt8](copying: step) + [UInt8](repeating: 0, count: mostZeros)
    var rest = ByteReader(whole.rawSpan)
    try progress.decodeStep(&rest, basis)
    return (progress, basis)
  }

  private mutating func decodeStep(_ reader: inout ByteReader, _ basis: Basis) throws(FormatError) {
    try reader.version(Self.version)
    cursor.offset = try reader.varint()
    furthest.offset = cursor.offset &+ UInt64(bitPattern: try reader.zigzag())
    number = try reader.varint()
    let frontier = try reader.varint()
    guard frontier < .max else { throw FormatError("a frontier at the highest number") }
    guard reader.remaining >= Self.mostZeros else { throw FormatError("a peer's progress is cut") }
    heardThrough = try reader.varint()
    let parts = try reader.u8()
    guard parts < 8 else { throw FormatError("unknown parts of a peer's progress") }
    var pending = basis.pending
    if parts & 1 != 0 { pending = try SequenceSet(from: &reader).symmetricDifference(pending) }
    guard pending.first != 0, pending.last ?? 0 < .max else {
      throw FormatError("pending entries with impossible numbers")
    }
    if parts & 2 != 0 { resumption = try reader.blob() }
    if parts & 4 != 0 { resync = try Resync(from: &reader) }
    guard parts == 0 || reader.remaining >= Self.mostZeros else {
      throw FormatError("a peer's progress is cut")
    }
    cursor.epoch = try reader.varint() ^ basis.epoch
    furthest.epoch = try reader.varint() ^ basis.epoch
    batchID = BatchID(try reader.varint() ^ usualID(number).bits)
    let batchLimit = try reader.varint()
    outbox = Outbox(frontier: frontier, pending: pending, batchLimit: batchLimit)
    comparedThrough.epoch = try reader.varint()
    comparedThrough.offset = try reader.varint()
    renamedThrough = try reader.varint()
    let refersToBasis = parts & 1 != 0 || !basis.pending.isEmpty
    guard try reader.u32() == (refersToBasis ? basis.sum : 0) else {
      throw FormatError("a peer's progress is for another basis")
    }
    guard reader.remaining <= Self.mostZeros else {
      throw FormatError("bytes after a peer's progress")
    }
  }
}

extension SequenceSet {
  fileprivate var encodedBytes: Int {
    var writer = ByteWriter()
    encode(into: &writer)
    return writer.bytes.count
  }
}

extension WaitReason {
  var encoded: [UInt8] {
    var writer = ByteWriter()
    switch self {
    case .conflict(let position):
      writer.u8(1)
      position.encode(into: &writer)
    case .lost(let position):
      writer.u8(2)
      position.encode(into: &writer)
    case .parked(let rejection):
      writer.u8(3)
      writer.text(rejection.code)
      writer.text(rejection.message)
    case .needsDecision: writer.u8(4)
    }
    return writer.bytes
  }

  init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    switch try reader.u8() {
    case 1: self = .conflict(try Position(from: &reader))
    case 2: self = .lost(try Position(from: &reader))
    case 3:
      let code = try reader.text()
      self = .parked(Rejection(code: code, message: try reader.text()))
    case 4: self = .needsDecision
    default: throw FormatError("unknown reason for waiting")
    }
    guard reader.remaining == 0 else { throw FormatError("bytes after a reason for waiting") }
  }
}

/// What every commit saves of a peer: the progress's step, the batch in flight, the newest
/// positions and the retention pin. All are in the pin's record, so that an edit sent by itself
/// costs one record; compaction reads only the pin, the first part. The bytes are in
/// `HowReplicationWorks.md`.
struct PeerState {
  var progress: PeerProgress
  var basis: PeerProgress.Basis
  var batch: OutgoingBatch?
  /// The newest runs of `settled`, which are not in its own records yet.
  var tail: [SettledRun]
  var settled = SettledRuns()
  var pin: RetentionPin?

  /// The value of the step's record.
  static func encode(
    _ progress: PeerProgress, _ basis: PeerProgress.Basis, _ batch: OutgoingBatch?,
    _ tail: [SettledRun], _ pin: RetentionPin
  ) -> [UInt8] {
    var writer = ByteWriter()
    let epoch = basis.epoch
    writer.blob(progress.encodedStep(basis))
    writer.blob(batch?.encoded(progress, epoch) ?? [])
    writer.blob(SettledRunsCoding.encode(tail[...], epoch: epoch))
    return pin.record(before: writer.bytes)
  }

  /// Decodes the pin's record after the pin.
  static func decode(_ value: RawSpan, basis: RawSpan) throws(FormatError) -> PeerState {
    var reader = ByteReader(value)
    let step = try reader.blob()
    let (progress, basis) = try PeerProgress.decode(basis: basis, step: step.rawSpan)
    let epoch = basis.epoch
    let bytes = try reader.blob()
    let batch = bytes.isEmpty ? nil : try OutgoingBatch(decoding: bytes.rawSpan, progress, epoch)
    let tail = try SettledRunsCoding.decode(try reader.blob(), epoch: epoch)
    guard reader.remaining == 0 else { throw FormatError("bytes after a peer's step") }
    return PeerState(progress: progress, basis: basis, batch: batch, tail: tail)
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
  func encoded(_ progress: PeerProgress, _ epoch: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.zigzag(Int64(bitPattern: number &- progress.number))
    let isUsual = batchID == progress.usualID(number)
    writer.varint(UInt64(items.count) << 1 | (isUsual ? 0 : 1))
    if !isUsual { writer.u64(batchID.bits) }
    var last = progress.outbox.frontier
    for item in items {
      writer.zigzag(Int64(bitPattern: item.sequence &- last))
      last = item.sequence
      item.base.encode(into: &writer, Position(epoch: epoch, offset: progress.cursor.offset))
    }
    return writer.bytes
  }

  var sequences: SequenceSet {
    items.reduce(into: SequenceSet()) { $0.insert($1.sequence) }
  }
}

extension OutgoingBatch {
  init(decoding bytes: RawSpan, _ progress: PeerProgress, _ epoch: UInt64) throws(FormatError) {
    var reader = ByteReader(bytes)
    number = progress.number &+ UInt64(bitPattern: try reader.zigzag())
    let bits = try reader.varint()
    batchID = bits & 1 == 0 ? progress.usualID(number) : BatchID(try reader.u64())
    let count = Int(clamping: bits >> 1)
    guard count <= reader.remaining / 2 else { throw FormatError("more changes than bytes") }
    items = []
    items.reserveCapacity(count)
    var last = progress.outbox.frontier
    let place = Position(epoch: epoch, offset: progress.cursor.offset)
    for _ in 0..<count {
      last = last &+ UInt64(bitPattern: try reader.zigzag())
      items.append(Item(sequence: last, base: try ChangeBase(from: &reader, place)))
    }
    guard reader.remaining == 0 else { throw FormatError("bytes after a batch") }
  }
}

extension ChangeBase {
  /// - Parameter place: positions of its epoch are coded without it, with the distance of the
  ///   offset.
  func encode(into writer: inout ByteWriter, _ place: Position) {
    switch self {
    case .absent: writer.u8(0)
    case .position(let position) where position.epoch == place.epoch:
      writer.u8(3)
      writer.zigzag(Int64(bitPattern: position.offset &- place.offset))
    case .position(let position):
      writer.u8(1)
      position.encode(into: &writer)
    case .operation(let sequence):
      writer.u8(2)
      writer.varint(sequence)
    }
  }

  init(from reader: inout ByteReader, _ place: Position) throws(FormatError) {
    switch try reader.u8() {
    case 0: self = .absent
    case 1: self = .position(try Position(from: &reader))
    case 2: self = .operation(sequence: try reader.varint())
    case 3:
      let distance = UInt64(bitPattern: try reader.zigzag())
      self = .position(Position(epoch: place.epoch, offset: place.offset &+ distance))
    default: throw FormatError("unknown kind of base")
    }
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

  /// The id of the empty batch that is sent instead if this one is given up.
  var ofEmpty: BatchID { BatchID(~bits) }
}
