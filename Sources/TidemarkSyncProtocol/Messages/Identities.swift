internal import TidemarkEngine

/// A writer's id: 128 random bits, drawn by every store, and again by a copy of one.
public struct ReplicaID: Sendable, Hashable {
  /// Sixteen bytes.
  public let bytes: [UInt8]

  /// The length in bytes.
  public static let byteCount = 16

  /// A replica of these bytes.
  /// - Returns: nil unless there are sixteen.
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// The id of no replica: zeros.
  package static let none = ReplicaID(padding: [])

  package init(unchecked bytes: [UInt8]) { self.bytes = bytes }

  /// The replica of bytes from the log, which are sixteen; others are cut or padded with zeros.
  package init(padding bytes: [UInt8]) {
    let missing = max(0, Self.byteCount - bytes.count)
    self.bytes = bytes.prefix(Self.byteCount) + Array(repeating: 0, count: missing)
  }
}

extension ReplicaID: Comparable {
  /// Byte order, which breaks ties between commit times.
  public static func < (a: ReplicaID, b: ReplicaID) -> Bool {
    a.bytes.lexicographicallyPrecedes(b.bytes)
  }
}

extension ReplicaID: LosslessStringConvertible {
  /// Reads what ``description`` wrote.
  public init?(_ description: String) {
    guard description.utf8.count == 2 * Self.byteCount,
      let bytes = [UInt8](hexDigits: Array(description.utf8))
    else { return nil }
    self.init(bytes)
  }

  /// Thirty-two lower-case hexadecimal digits.
  public var description: String { Hex.text(bytes) }
}

/// Identifies a write for ever: the replica that made it, and its sequence in that replica's log.
public struct OperationID: Sendable, Hashable {
  /// The replica that wrote.
  public var replica: ReplicaID
  /// The sequence in that replica's log.
  public var sequence: UInt64

  /// The write with a sequence of a replica.
  public init(replica: ReplicaID, sequence: UInt64) {
    self.replica = replica
    self.sequence = sequence
  }
}

/// The position of an entry in a feed: the cursor of readers, and the base of changes.
///
/// Every opening of a feed for writing draws a random epoch, so that an offset that a crash or a
/// restored backup took back differs from the same offset assigned again.
public struct Position: Sendable, Hashable {
  /// The epoch in which the offset was assigned.
  public var epoch: UInt64
  /// Counts a feed's entries; 0 is before the first.
  public var offset: UInt64

  /// A position.
  public init(epoch: UInt64, offset: UInt64) {
    self.epoch = epoch
    self.offset = offset
  }

  /// The position before the first entry, in every feed.
  public static let beginning = Position(epoch: 0, offset: 0)
}

/// An epoch of a feed: its offsets go from its first to the one before the next epoch's first.
public struct FeedEpoch: Sendable, Hashable {
  /// The epoch.
  public var epoch: UInt64
  /// The first offset in it.
  public var firstOffset: UInt64

  /// An epoch that begins at an offset.
  public init(epoch: UInt64, firstOffset: UInt64) {
    self.epoch = epoch
    self.firstOffset = firstOffset
  }
}

/// The extent of a feed: the epochs that it lists, its end, and up to where tombstones are dropped.
public struct FeedRange: Sendable, Hashable {
  /// In the order of their offsets.
  public var epochs: [FeedEpoch]
  /// The last offset; 0 for an empty feed.
  public var head: UInt64
  /// A reader with an earlier cursor must compare by digest: tombstones up to here may be dropped.
  public var truncatedThrough: UInt64

  /// A range.
  public init(epochs: [FeedEpoch], head: UInt64, truncatedThrough: UInt64 = 0) {
    self.epochs = epochs
    self.head = head
    self.truncatedThrough = truncatedThrough
  }

  /// The last position; the beginning for an empty feed.
  public var headPosition: Position { position(ofOffset: head) }

  /// The position of an offset; the beginning for one that is not in the range.
  public func position(ofOffset offset: UInt64) -> Position {
    guard offset > 0, offset <= head else { return .beginning }
    let end = epochs.partitioningIndex { $0.firstOffset > offset }
    return end == 0 ? .beginning : Position(epoch: epochs[end - 1].epoch, offset: offset)
  }

  /// Whether a position is in the feed: its offset is in its epoch, which the feed still lists.
  public func contains(_ position: Position) -> Bool {
    if position == .beginning { return true }
    return position.offset > 0 && self.position(ofOffset: position.offset) == position
  }

  /// The last offset up to which this feed is the one that a reader had pulled to a position. It is
  /// before the position if the feed was restored from a backup.
  /// - Returns: nil when the feed does not list the position's epoch.
  public func lastCommonOffset(with position: Position) -> UInt64? {
    if position == .beginning { return 0 }
    guard let index = epochs.firstIndex(where: { $0.epoch == position.epoch }),
      position.offset >= epochs[index].firstOffset
    else { return nil }
    return min(position.offset, lastOffset(at: index))
  }

  /// The last offset up to which this feed is the same as in an earlier or later state of it.
  /// - Returns: nil when none of the other's epochs is among those that this feed lists.
  package func lastCommonOffset(with other: FeedRange) -> UInt64? {
    for (index, known) in other.epochs.enumerated().reversed() {
      let last = Position(epoch: known.epoch, offset: other.lastOffset(at: index))
      if let common = lastCommonOffset(with: last) { return common }
    }
    return nil
  }

  /// The last offset of an epoch.
  private func lastOffset(at index: Int) -> UInt64 {
    index + 1 < epochs.count ? epochs[index + 1].firstOffset - 1 : head
  }
}
