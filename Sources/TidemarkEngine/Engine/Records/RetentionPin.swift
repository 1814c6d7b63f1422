/// Keeps for a peer what it has yet to see of the log: pending entries, what those were made
/// upon, and deletes that the peer's feed has where this store has not read yet. It is a record in
/// the log, so that a compaction in any process honours it.
///
/// ```
/// u8      version, 3
/// varint  frontier
/// varint  settled through
/// varint  first own delete that may stand in the feed behind the cursor; 0 for none
/// runs    decided behind the frontier
/// runs    pending before it
/// varint  milliseconds since 1970 of the last sign of life
/// ```
/// The record has the length of these bytes, a varint, before them, and behind them what else the
/// pin's owner keeps in it.
package struct RetentionPin: Sendable, Hashable {
  private static let version: UInt8 = 3
  /// A peer without a sign of life for so long holds back pending deletes alone, with what they
  /// were made upon: 90 days.
  package static let millisecondsToLive: UInt64 = 90 * 86_400_000
  /// Most runs of each of both sets: a pin is written with every batch.
  static let mostRuns = 256

  /// Own entries behind it are pending, but for those in `ahead`; those up to it are decided, but
  /// for those in `pending`.
  package private(set) var frontier: UInt64
  package private(set) var ahead: SequenceSet
  package private(set) var pending: SequenceSet
  /// An own entry up to here that is decided was in the feed when it was: behind it, one of
  /// `pending` may have taken its place before it was sent.
  package private(set) var settledThrough: UInt64
  /// Deletes from here on stay, since older entries of others may yet come; nil for none.
  package private(set) var unread: UInt64?
  /// Milliseconds since 1970.
  package var renewed: UInt64

  /// A pin. Of sets with too many runs it takes more than they have, so that more is kept.
  package init(
    frontier: UInt64, ahead: SequenceSet = SequenceSet(), pending: SequenceSet = SequenceSet(),
    settledThrough: UInt64, unread: UInt64? = nil, renewed: UInt64
  ) {
    self.frontier = frontier
    self.settledThrough = settledThrough
    self.unread = unread
    self.renewed = renewed
    var pending = pending
    if ahead.ranges.count > Self.mostRuns, let last = ahead.last {
      let rest = ahead.ranges[Self.mostRuns].lowerBound
      self.ahead = SequenceSet(ascending: [])
      for run in ahead.ranges.prefix(Self.mostRuns) { self.ahead.insert(run) }
      // Whether they are pending is not said any more; of those in `pending` each one stays.
      pending.insert(rest...last)
    } else {
      self.ahead = ahead
    }
    self.pending = pending.coarsened(to: Self.mostRuns)
  }

  /// Whether an own entry is pending.
  package func isPending(_ sequence: UInt64) -> Bool {
    pending.contains(sequence) || sequence > frontier && !ahead.contains(sequence)
  }

  /// Where entries begin that it may speak of.
  var first: UInt64 {
    min(frontier.addingReportingOverflow(1).partialValue, pending.first ?? .max, unread ?? .max)
  }

  /// Whether both keep the same.
  package func keepsSame(as other: RetentionPin) -> Bool {
    var other = other
    other.renewed = renewed
    return self == other
  }

  package var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.varint(frontier)
    writer.varint(settledThrough)
    writer.varint(unread ?? 0)
    ahead.encode(into: &writer)
    pending.encode(into: &writer)
    writer.varint(renewed)
    return writer.bytes
  }

  /// The record of the pin.
  /// - Parameter rest: what its owner keeps in the record.
  package func record(before rest: [UInt8]) -> [UInt8] {
    let pin = encoded
    var writer = ByteWriter()
    writer.blob(pin)
    writer.raw(rest)
    return writer.bytes
  }

  /// The pin of a record, which may be of another version, and the rest.
  package static func split(
    _ record: RawSpan
  ) throws(FormatError) -> (pin: [UInt8], rest: [UInt8]) {
    var reader = ByteReader(record)
    let pin = try reader.blob()
    return (pin, try reader.array(reader.remaining))
  }

  package init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    guard try reader.u8() == Self.version else {
      throw FormatError("unknown version of a pin", isNewer: true)
    }
    frontier = try reader.varint()
    settledThrough = try reader.varint()
    let first = try reader.varint()
    unread = first == 0 ? nil : first
    ahead = try SequenceSet(from: &reader)
    pending = try SequenceSet(from: &reader)
    renewed = try reader.varint()
    guard reader.remaining == 0 else { throw FormatError("bytes behind a pin") }
  }
}

extension RetentionPin {
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
