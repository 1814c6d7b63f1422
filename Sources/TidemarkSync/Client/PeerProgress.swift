package import TidemarkEngine

/// The progress that a store has made with one peer. It is a record in the store's log, written in
/// one batch with the entries that it speaks of.
///
/// Own entries up to `frontier` are decided, but for those in `again`, in `waiting` and in the
/// batch that is under way; those behind it are pending, but for those in `ahead`.
package struct PeerProgress: Sendable, Hashable {
  /// Why an entry is not sent although it is not decided.
  package enum Waiting: Sendable, Hashable {
    /// Something else stands in the feed, at this position or behind it; the resolver needs it.
    case conflict(Position)
    /// The same, and the feed's policy has decided for it.
    case lost(Position)
    /// The peer will not have it.
    case parked(Rejection)
    /// The user must decide.
    case needsDecision
  }

  /// The feed that positions speak of; nil before the first hello.
  package var feed: ReplicaID?
  /// Everything up to here was taken from the feed.
  package var cursor = Position.beginning
  /// The feed's end when this was written: no position that is known lies behind it. A feed that
  /// does not list it any more was restored from a backup.
  package var furthest = Position.beginning
  /// The bytes that the peer wants to have kept with it.
  package var resumption: [UInt8] = []
  /// The last batch of which the verdicts are known.
  package var number: UInt64 = 0
  package var batchID = BatchID.none
  /// The batch that is under way; a formed one with another id was given up.
  package var underWay = BatchID.none
  /// The ids of the last batches that were formed: what a restored peer holds of these is no
  /// copy's.
  package private(set) var formedIDs: [BatchID] = []
  private static let mostFormedIDs = 16
  package var frontier: UInt64 = 0
  package var ahead = SequenceSet()
  package var again = SequenceSet()
  /// The changes in `again` that the feed has had before it was restored from a backup.
  package var lost = SequenceSet()
  package var waiting = WaitingEntries()
  /// Most changes of a batch, while it is sought which of them the peer fails on; 0 for no limit.
  package var batchLimit: UInt64 = 0
  /// The work that has to be done first to put things right; nil when nothing has.
  package var resync: Resync?
  /// Stands for the scope that the cursor speaks of.
  package var scope: UInt64 = 0
  /// Stands for how far the authorization reached then; 0 for everything, and for what no peer has
  /// told.
  package var reach: UInt64 = 0
  /// Others may know own changes up to here although the feed has them no more: it was restored
  /// from a backup, or made anew.
  package var heardThrough: UInt64 = 0
  /// Up to here the feed was compared by digest after it was restored, and is read once more for
  /// own operations: what a key without any version here had in it was deleted there.
  package var comparedThrough = Position.beginning

  init() {}

  /// The last own change of which the peer may have heard.
  var lastSent: UInt64 { max(heardThrough, frontier, ahead.last ?? 0) }

  /// Takes note of a batch that is formed.
  mutating func note(_ id: BatchID) {
    underWay = id
    formedIDs.append(id)
    if formedIDs.count > Self.mostFormedIDs { formedIDs.removeFirst() }
  }

  // MARK: Coding

  private static let version: UInt8 = 1

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.u8(
      (feed == nil ? 0 : 1) | (heardThrough == 0 ? 0 : 2) | (comparedThrough == .beginning ? 0 : 4)
        | (formedIDs.isEmpty ? 0 : 8) | (reach == 0 ? 0 : 16))
    if let feed { writer.bytes.append(contentsOf: feed.bytes) }
    cursor.encode(into: &writer)
    furthest.encode(into: &writer)
    writer.varint(number)
    writer.u64(batchID.bits)
    writer.u64(underWay.bits)
    writer.varint(frontier)
    ahead.encode(into: &writer)
    again.encode(into: &writer)
    lost.encode(into: &writer)
    writer.varint(UInt64(waiting.count))
    var last: Waiting?
    for (sequence, reason) in waiting.sorted(by: { $0.key < $1.key }) {
      writer.varint(sequence)
      // Where many are refused they mostly are for the same reason.
      if reason == last { writer.u8(Waiting.sameAsLast) } else { reason.encode(into: &writer) }
      last = reason
    }
    writer.varint(batchLimit)
    writer.u64(scope)
    writer.u8(resync == nil ? 0 : 1)
    resync?.encode(into: &writer)
    writer.blob(resumption)
    if heardThrough != 0 { writer.varint(heardThrough) }
    if comparedThrough != .beginning { comparedThrough.encode(into: &writer) }
    if !formedIDs.isEmpty { writer.u8(UInt8(formedIDs.count)) }
    for id in formedIDs { writer.u64(id.bits) }
    if reach != 0 { writer.u64(reach) }
    return writer.bytes
  }

  init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    guard try reader.u8() == Self.version else {
      throw FormatError("written by a later version", isNewer: true)
    }
    let parts = try reader.u8()
    if parts & 1 != 0 { feed = try ReplicaID(from: &reader) }
    cursor = try Position(from: &reader)
    furthest = try Position(from: &reader)
    number = try reader.varint()
    batchID = BatchID(try reader.u64())
    underWay = BatchID(try reader.u64())
    frontier = try reader.varint()
    ahead = try SequenceSet(from: &reader)
    again = try SequenceSet(from: &reader)
    lost = try SequenceSet(from: &reader)
    let count = try reader.varint(atMost: reader.remaining / 2)
    var last: Waiting?
    for _ in 0..<count {
      let sequence = try reader.varint()
      let reason = try Waiting(from: &reader, after: last)
      waiting.restore(sequence, reason)
      last = reason
    }
    batchLimit = try reader.varint()
    scope = try reader.u64()
    if try reader.u8() != 0 { resync = try Resync(from: &reader) }
    resumption = try reader.blob()
    if parts & 2 != 0 { heardThrough = try reader.varint() }
    if parts & 4 != 0 { comparedThrough = try Position(from: &reader) }
    if parts & 8 != 0 {
      for _ in 0..<(try reader.u8()) { formedIDs.append(BatchID(try reader.u64())) }
    }
    if parts & 16 != 0 { reach = try reader.u64() }
    guard reader.remaining == 0 else { throw FormatError("bytes after a peer's progress") }
  }
}

extension PeerProgress.Waiting {
  /// In the place of a reason: that of the entry before it.
  fileprivate static let sameAsLast: UInt8 = 5

  func encode(into writer: inout ByteWriter) {
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
  }

  init(
    from reader: inout ByteReader, after last: PeerProgress.Waiting?
  ) throws(FormatError) {
    switch try reader.u8() {
    case 1: self = .conflict(try Position(from: &reader))
    case 2: self = .lost(try Position(from: &reader))
    case 3:
      let code = try reader.text()
      self = .parked(Rejection(code: code, message: try reader.text()))
    case 4: self = .needsDecision
    case Self.sameAsLast:
      guard let last else { throw FormatError("the first reason repeats none") }
      self = last
    default: throw FormatError("unknown reason for waiting")
    }
  }
}

extension ReplicaID {
  init(from reader: inout ByteReader) throws(FormatError) {
    guard let id = ReplicaID(try reader.array(Self.byteCount)) else {
      throw FormatError("a replica has sixteen bytes")
    }
    self = id
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
