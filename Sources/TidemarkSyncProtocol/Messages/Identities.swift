internal import TidemarkEngine

/// The id of a replica: 128 random bits. Every store draws its own, and a copy of a store draws
/// another.
public struct ReplicaID: Sendable, Hashable {
  /// The sixteen bytes of the id.
  public let bytes: [UInt8]

  /// The length of a replica's id: 16 bytes.
  public static let byteCount = 16

  /// Creates the id with these bytes.
  /// - Returns: nil unless there are sixteen bytes.
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
  /// Compares the bytes of two ids. The order decides between changes with equal commit times.
  public static func < (a: ReplicaID, b: ReplicaID) -> Bool {
    a.bytes.lexicographicallyPrecedes(b.bytes)
  }
}

extension ReplicaID: LosslessStringConvertible {
  /// Creates the id from its text: 32 hexadecimal digits, as ``description`` writes them.
  /// - Returns: nil if the text is not such an id.
  public init?(_ description: String) {
    guard description.utf8.count == 2 * Self.byteCount,
      let bytes = [UInt8](hexDigits: Array(description.utf8))
    else { return nil }
    self.init(bytes)
  }

  /// The id as thirty-two lower-case hexadecimal digits.
  public var description: String { Hex.text(bytes) }
}

/// Identifies a write for ever, at every replica: the replica that made the write, and its sequence
/// in that replica's log.
public struct OperationID: Sendable, Hashable {
  /// The replica that made the write.
  public var replica: ReplicaID
  /// The sequence of the write in its replica's log.
  public var sequence: UInt64

  /// Creates the id of a write.
  /// - Parameters:
  ///   - replica: the replica that made the write.
  ///   - sequence: the sequence of the write in that replica's log.
  public init(replica: ReplicaID, sequence: UInt64) {
    self.replica = replica
    self.sequence = sequence
  }
}

/// The position of an entry in a feed: the cursor of readers, and the base of changes.
///
/// Every opening of a feed for writing draws a random epoch, so that an offset that a crash or a
/// restored backup took back differs from the same offset assigned again.
public struct FeedPosition: Sendable, Hashable {
  /// The epoch in which the feed assigned the offset: a random number that changes each time the
  /// feed is opened for writing.
  public var epoch: UInt64
  /// The number of the entry in its feed, counted from 1; 0 is before the first entry.
  public var offset: UInt64

  /// Creates a position in a feed.
  /// - Parameters:
  ///   - epoch: the epoch in which the offset was assigned.
  ///   - offset: the number of the entry; 0 for the position before the first.
  public init(epoch: UInt64, offset: UInt64) {
    self.epoch = epoch
    self.offset = offset
  }

  /// The position before the first entry of any feed: the cursor of a reader that has pulled
  /// nothing.
  public static let beginning = FeedPosition(epoch: 0, offset: 0)
}

/// A range of offsets that a feed assigned between two openings for writing. It ends before the
/// first offset of the next epoch.
public struct FeedEpoch: Sendable, Hashable {
  /// The random number that identifies the epoch.
  public var epoch: UInt64
  /// The first offset that the feed assigned in this epoch.
  public var firstOffset: UInt64

  /// Creates an epoch of a feed.
  /// - Parameters:
  ///   - epoch: the random number that identifies it.
  ///   - firstOffset: its first offset.
  public init(epoch: UInt64, firstOffset: UInt64) {
    self.epoch = epoch
    self.firstOffset = firstOffset
  }
}

/// The extent of a feed: its epochs, its last offset, and the offset through which tombstones may
/// be dropped.
public struct FeedRange: Sendable, Hashable {
  /// The epochs that the feed lists, in the order of their offsets.
  public var epochs: [FeedEpoch]
  /// The offset of the feed's last entry; 0 for an empty feed.
  public var head: UInt64
  /// The offset through which the feed may have dropped tombstones. A reader with an earlier cursor
  /// must compare by digest.
  public var truncatedThrough: UInt64

  /// Creates the range of a feed.
  /// - Parameters:
  ///   - epochs: the epochs, in the order of their offsets.
  ///   - head: the last offset; 0 for an empty feed.
  ///   - truncatedThrough: the offset through which tombstones may be dropped.
  public init(epochs: [FeedEpoch], head: UInt64, truncatedThrough: UInt64 = 0) {
    self.epochs = epochs
    self.head = head
    self.truncatedThrough = truncatedThrough
  }

  /// The position of the feed's last entry; ``FeedPosition/beginning`` for an empty feed.
  public var headPosition: FeedPosition { position(ofOffset: head) }

  /// Returns the position with an offset, that is the offset with its epoch;
  /// ``FeedPosition/beginning`` if the range does not have the offset.
  public func position(ofOffset offset: UInt64) -> FeedPosition {
    guard offset > 0, offset <= head else { return .beginning }
    let end = epochs.partitioningIndex { $0.firstOffset > offset }
    return end == 0 ? .beginning : FeedPosition(epoch: epochs[end - 1].epoch, offset: offset)
  }

  /// Whether a position is in the feed: its offset is in its epoch, which the feed still lists.
  public func contains(_ position: FeedPosition) -> Bool {
    if position == .beginning { return true }
    return position.offset > 0 && self.position(ofOffset: position.offset) == position
  }

  /// Returns the last offset that this feed shares with the feed that a reader pulled to a
  /// position. It is before the position's offset if the feed was restored from a backup.
  /// - Returns: nil when the feed does not list the position's epoch.
  public func lastCommonOffset(with position: FeedPosition) -> UInt64? {
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
      let last = FeedPosition(epoch: known.epoch, offset: other.lastOffset(at: index))
      if let common = lastCommonOffset(with: last) { return common }
    }
    return nil
  }

  /// The last offset of an epoch.
  private func lastOffset(at index: Int) -> UInt64 {
    index + 1 < epochs.count ? epochs[index + 1].firstOffset - 1 : head
  }
}
