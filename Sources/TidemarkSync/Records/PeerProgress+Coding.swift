internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The progress in two parts: the *basis*, a record that seldom changes, and the *step*, which is
/// written with every commit and is small for that.
///
/// Basis:
/// ```
/// u8      version, 5
/// u8      1: the feed is known
/// bytes   the feed, 16, if known
/// u64     scope
/// u64     reach
/// u64     epoch of the cursor when this was written
/// names   of batches, see `BatchNames`
/// epochs  u8 count; for each u64 epoch, varint first offset
/// runs    ahead, again and lost when this was written
/// ```
/// Step:
/// ```
/// u8      version, 5
/// varint  parts, see below
/// varint  cursor: offset; with 1 u64 epoch, else it is the basis's
/// zigzag  furthest: distance of the offset from the cursor's; with 2 u64 epoch, else likewise
/// varint  number
/// zigzag  last number that was given, less number
/// u64     id of the batch, with 4: else that of the number, or none for number 0
/// varint  frontier
/// runs    ahead, again, lost: with 8, how they differ from the basis's
/// varint  batch limit, with 16
/// resync  with 32
/// bytes   resumption, with 64
/// varint  heard through, with 128
/// place   compared through, with 256: u64 epoch, varint offset
/// varint  renamed through, with 1024
/// u32     low half of the XXH64 of the basis, with 512: where it or the step has sets
/// ```
extension PeerProgress {
  private static let version: UInt8 = 5

  private struct Parts: OptionSet {
    var rawValue: UInt64
    static let cursorEpoch = Parts(rawValue: 1)
    static let furthestEpoch = Parts(rawValue: 2)
    static let batchID = Parts(rawValue: 4)
    static let sets = Parts(rawValue: 8)
    static let batchLimit = Parts(rawValue: 16)
    static let resync = Parts(rawValue: 32)
    static let resumption = Parts(rawValue: 64)
    static let heardThrough = Parts(rawValue: 128)
    static let comparedThrough = Parts(rawValue: 256)
    static let basisSum = Parts(rawValue: 512)
    static let renamedThrough = Parts(rawValue: 1024)
  }

  /// The id that a number has unless another one is told.
  func usualID(_ number: UInt64) -> BatchID {
    number == 0 ? .none : names.newest(number) ?? .none
  }

  /// The parts of a basis that a step refers to.
  struct Basis: Sendable, Hashable {
    var epoch: UInt64 = 0
    var sets = Sets()
    /// Tells its bytes from those of another one, upon which a step would make no sense.
    var sum: UInt32 = 0

    mutating func note(_ bytes: RawSpan) {
      sum = UInt32(truncatingIfNeeded: XXH64.hash(bytes, seed: 0))
    }
  }

  /// The basis for the steps from now on.
  var nextBasis: Basis { Basis(epoch: cursor.epoch, sets: sets) }

  /// Whether the sets have gone so far from a basis's that a new one is worth its bytes.
  ///
  /// A step with a difference of n bytes, which grows with each, costs as many; a basis costs its
  /// own. So it is written about as often as makes both together cost least, when the square of the
  /// difference is some times the basis: a step costs by the root of what is scattered.
  func isFar(from basis: Basis) -> Bool {
    let difference = sets.difference(from: basis.sets)
    guard !difference.isEmpty else { return false }
    let bytes = difference.encodedBytes
    return bytes > 32 && bytes * bytes > 8 * sets.encodedBytes
  }

  func encodedBasis(_ basis: Basis) -> [UInt8] {
    var writer = ByteWriter()
    writer.bytes = encodedHead(basis.epoch)
    basis.sets.encode(into: &writer)
    return writer.bytes
  }

  /// The part of a basis that stands before its sets.
  func encodedHead(_ epoch: UInt64) -> [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.u8(feed == nil ? 0 : 1)
    if let feed { writer.bytes.append(contentsOf: feed.bytes) }
    writer.u64(scope)
    writer.u64(reach)
    writer.u64(epoch)
    names.encode(into: &writer)
    writer.u8(UInt8(clamping: epochs.count))
    for epoch in epochs {
      writer.u64(epoch.epoch)
      writer.varint(epoch.firstOffset)
    }
    return writer.bytes
  }

  /// - Parameter basis: the one that was written last.
  func encodedStep(_ basis: Basis) -> [UInt8] {
    let epoch = basis.epoch
    let difference = sets.difference(from: basis.sets)
    var parts = Parts()
    func note(_ isThere: Bool, _ part: Parts) { if isThere { parts.insert(part) } }
    note(cursor.epoch != epoch, .cursorEpoch)
    note(furthest.epoch != epoch, .furthestEpoch)
    note(batchID != usualID(number), .batchID)
    note(!difference.isEmpty, .sets)
    note(batchLimit != 0, .batchLimit)
    note(resync != nil, .resync)
    note(!resumption.isEmpty, .resumption)
    note(heardThrough != 0, .heardThrough)
    note(comparedThrough != .beginning, .comparedThrough)
    note(renamedThrough != 0, .renamedThrough)
    note(!difference.isEmpty || !basis.sets.isEmpty, .basisSum)
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.varint(parts.rawValue)
    writer.varint(cursor.offset)
    if parts.contains(.cursorEpoch) { writer.u64(cursor.epoch) }
    writer.zigzag(Int64(bitPattern: furthest.offset &- cursor.offset))
    if parts.contains(.furthestEpoch) { writer.u64(furthest.epoch) }
    writer.varint(number)
    writer.zigzag(Int64(bitPattern: names.last &- number))
    if parts.contains(.batchID) { writer.u64(batchID.bits) }
    writer.varint(frontier)
    if parts.contains(.sets) { difference.encode(into: &writer) }
    if batchLimit != 0 { writer.varint(batchLimit) }
    resync?.encode(into: &writer)
    if !resumption.isEmpty { writer.blob(resumption) }
    if heardThrough != 0 { writer.varint(heardThrough) }
    if parts.contains(.comparedThrough) { comparedThrough.encode(into: &writer) }
    if renamedThrough != 0 { writer.varint(renamedThrough) }
    if parts.contains(.basisSum) { writer.u32(basis.sum) }
    return writer.bytes
  }

  static func decode(
    basis bytes: RawSpan, step: RawSpan
  ) throws(FormatError) -> (progress: PeerProgress, basis: Basis) {
    var progress = PeerProgress()
    var basis = Basis()
    basis.note(bytes)
    var reader = ByteReader(bytes)
    try checkVersion(&reader)
    if try reader.u8() & 1 != 0 { progress.feed = try ReplicaID(from: &reader) }
    progress.scope = try reader.u64()
    progress.reach = try reader.u64()
    basis.epoch = try reader.u64()
    progress.names = try BatchNames(from: &reader)
    for _ in 0..<Int(try reader.u8()) {
      let epoch = FeedEpoch(epoch: try reader.u64(), firstOffset: try reader.varint())
      guard epoch.firstOffset >= progress.epochs.last?.firstOffset ?? 1 else {
        throw FormatError("a feed's epochs are not in order")
      }
      progress.epochs.append(epoch)
    }
    basis.sets = try Sets(from: &reader)
    guard reader.remaining == 0 else { throw FormatError("bytes after a peer's basis") }
    var rest = ByteReader(step)
    try progress.decodeStep(&rest, basis)
    return (progress, basis)
  }

  private static func checkVersion(_ reader: inout ByteReader) throws(FormatError) {
    guard try reader.u8() == version else {
      throw FormatError("written by another version", isNewer: true)
    }
  }

  private mutating func decodeStep(
    _ reader: inout ByteReader, _ basis: Basis
  ) throws(FormatError) {
    let epoch = basis.epoch
    try Self.checkVersion(&reader)
    let parts = Parts(rawValue: try reader.varint())
    let cursorOffset = try reader.varint()
    cursor = Position(
      epoch: parts.contains(.cursorEpoch) ? try reader.u64() : epoch, offset: cursorOffset)
    let furthestOffset = cursorOffset &+ UInt64(bitPattern: try reader.zigzag())
    furthest = Position(
      epoch: parts.contains(.furthestEpoch) ? try reader.u64() : epoch, offset: furthestOffset)
    number = try reader.varint()
    names.last = number &+ UInt64(bitPattern: try reader.zigzag())
    batchID = parts.contains(.batchID) ? BatchID(try reader.u64()) : usualID(number)
    frontier = try reader.varint()
    guard frontier < .max else { throw FormatError("a frontier that nothing is behind") }
    sets = basis.sets
    if parts.contains(.sets) { sets = try Sets(from: &reader).difference(from: basis.sets) }
    if parts.contains(.batchLimit) { batchLimit = try reader.varint() }
    if parts.contains(.resync) { resync = try Resync(from: &reader) }
    if parts.contains(.resumption) { resumption = try reader.blob() }
    if parts.contains(.heardThrough) { heardThrough = try reader.varint() }
    if parts.contains(.comparedThrough) { comparedThrough = try Position(from: &reader) }
    if parts.contains(.renamedThrough) { renamedThrough = try reader.varint() }
    let isOfBasis =
      parts.contains(.basisSum) ? try reader.u32() == basis.sum : basis.sets.isEmpty
    guard isOfBasis else { throw FormatError("a peer's progress refers to what is not there") }
    guard reader.remaining == 0 else { throw FormatError("bytes after a peer's progress") }
  }
}

extension PeerProgress.Sets {
  func encode(into writer: inout ByteWriter) {
    ahead.encode(into: &writer)
    again.encode(into: &writer)
    lost.encode(into: &writer)
  }

  init(from reader: inout ByteReader) throws(FormatError) {
    ahead = try SequenceSet(from: &reader)
    again = try SequenceSet(from: &reader)
    lost = try SequenceSet(from: &reader)
  }

  var encodedBytes: Int {
    var writer = ByteWriter()
    encode(into: &writer)
    return writer.bytes.count
  }
}

extension PeerProgress.Waiting {
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

extension ReplicaID {
  init(from reader: inout ByteReader) throws(FormatError) {
    self.init(padding: try reader.array(Self.byteCount))
  }
}

extension ByteWriter {
  /// Varint length and UTF-8 bytes.
  mutating func text(_ text: String) {
    blob(Array(text.utf8))
  }

  /// Varint length and bytes.
  mutating func blob(_ bytes: [UInt8]) {
    varint(UInt64(bytes.count))
    self.bytes.append(contentsOf: bytes)
  }
}

extension ByteReader {
  mutating func text() throws(FormatError) -> String {
    guard let text = String(validating: try blob(), as: UTF8.self) else {
      throw FormatError("text that is not UTF-8")
    }
    return text
  }

  mutating func blob() throws(FormatError) -> [UInt8] {
    try array(try varint(atMost: remaining))
  }
}
