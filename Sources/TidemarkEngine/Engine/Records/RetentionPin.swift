/// Says what compaction must keep of the log for a peer of replication: pending entries, the
/// versions that they were made upon, and deletes. It is a record in the log, so that a compaction
/// in any process honours it.
/// A peer's *feed* is its log of changes. An *own* entry was written first in this store. It is
/// *pending* until it is *decided*: the peer has taken or refused it, or it need not be sent.
///
/// ```
/// u8      version, 4
/// varint  frontier
/// varint  settled through
/// varint  first own delete that may stand in the feed beyond what was read; 0 for none
/// runs    pending up to the frontier
/// varint  milliseconds since 1970 of the last sign of life
/// ```
/// In the record a varint with their length comes first; the peer's session keeps bytes behind.
package struct RetentionPin: Sendable, Hashable {
  private static let version: UInt8 = 4
  /// 90 days: for a peer silent for so long only pending deletes stay, and what they are based on.
  package static let millisecondsToLive: UInt64 = 90 * 86_400_000
  /// Most runs of `pending`: a pin is written with every batch.
  static let mostRuns = 256

  /// Own entries up to the frontier are decided, except those in `pending`; own entries above it
  /// are pending.
  package private(set) var frontier: UInt64
  /// Pending sequences, most of them up to the frontier.
  package private(set) var pending: SequenceSet
  /// A decided own entry up to here is in the feed, so that a pending one may be made upon it. One
  /// above may never have been sent, since a newer, pending one took its place: then that one may
  /// be made upon a still older version, which stays too.
  package private(set) var acknowledgedThrough: UInt64
  /// Deletes from this sequence on stay: older entries of others may yet be read from the feed, and
  /// without the tombstone they would bring the key back. Nil for none.
  package private(set) var unread: UInt64?
  /// Milliseconds since 1970.
  package var renewed: UInt64

  /// A pin. If `pending` has too many runs it is made coarser: compaction keeps more, never less.
  package init(
    frontier: UInt64, pending: SequenceSet = SequenceSet(), acknowledgedThrough: UInt64,
    unread: UInt64? = nil, renewed: UInt64
  ) {
    self.frontier = frontier
    self.acknowledgedThrough = acknowledgedThrough
    self.unread = unread
    self.renewed = renewed
    self.pending = pending.coarsened(to: Self.mostRuns)
  }

  /// Whether an own entry is pending.
  package func isPending(_ sequence: UInt64) -> Bool {
    sequence > frontier || pending.contains(sequence)
  }

  /// The lowest sequence that the pin may keep.
  var first: UInt64 {
    min(frontier.addingReportingOverflow(1).partialValue, pending.first ?? .max, unread ?? .max)
  }

  /// Whether both pins keep the same, whenever they were renewed.
  package func keepsSame(as other: RetentionPin) -> Bool {
    var other = other
    other.renewed = renewed
    return self == other
  }

  package var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.varint(frontier)
    writer.varint(acknowledgedThrough)
    writer.varint(unread ?? 0)
    pending.encode(into: &writer)
    writer.varint(renewed)
    return writer.bytes
  }

  /// The value of the pin's record.
  /// - Parameter rest: the bytes that the session with the peer keeps behind the pin.
  package func record(before rest: [UInt8]) -> [UInt8] {
    var writer = ByteWriter()
    writer.blob(encoded)
    writer.raw(rest)
    return writer.bytes
  }

  /// The bytes of the pin in a record, which may be of another version, and the rest.
  package static func split(_ record: RawSpan) throws(FormatError) -> (pin: [UInt8], rest: [UInt8])
  {
    var reader = ByteReader(record)
    let pin = try reader.blob()
    return (pin, try reader.array(reader.remaining))
  }

  package init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    try reader.version(Self.version)
    frontier = try reader.varint()
    acknowledgedThrough = try reader.varint()
    let first = try reader.varint()
    unread = first == 0 ? nil : first
    pending = try SequenceSet(from: &reader)
    renewed = try reader.varint()
    guard reader.remaining == 0 else { throw FormatError("bytes behind a pin") }
  }

  /// A peer's name and its pin. The pin is nil if it cannot be read, or a later version of the
  /// library wrote it; then compaction keeps all history for that peer.
  typealias Named = (name: [UInt8], pin: RetentionPin?)

  /// The pins of all peers: the records of type `pin`.
  static func all(in reader: Reader) throws(TidemarkError) -> [Named] {
    let table = try RecordTable(reader)
    var pins: [Named] = []
    for key in table.keys(of: .pin) {
      guard let value = try table.value(of: .pin, key: key) else { continue }
      let bytes = try? split(value.rawSpan).pin
      pins.append((key, bytes.flatMap { try? RetentionPin(decoding: $0.rawSpan) }))
    }
    return pins
  }

  /// Whether the peer has given no sign of life for so long that only deletes are kept for it.
  func isGone(in reader: Reader) -> Bool {
    let now = reader.millisecondsNow
    return now > renewed && now - renewed >= Self.millisecondsToLive
  }
}
