/// Asks for the sums over a part of what a feed's keys held at one position.
public struct DigestRequest: Sendable, Hashable {
  /// Who asks.
  public var replica: ReplicaID
  /// Which entries count.
  public var scope: SyncScope
  /// The part: the first bytes of the hashes of the keys in it; empty for all keys.
  public var path: [UInt8]

  /// A question about a part.
  public init(replica: ReplicaID, scope: SyncScope = .everything, path: [UInt8] = []) {
    self.replica = replica
    self.scope = scope
    self.path = path
  }
}

/// Keys counted and summed: equal sums mean equal keys with equal contents.
public struct DigestSum: Sendable, Hashable {
  /// How many keys.
  public var keys: UInt64
  /// The sum, modulo 2^128, of the keys' fingerprints: its low and its high half.
  public var low: UInt64
  public var high: UInt64

  /// A sum.
  public init(keys: UInt64 = 0, low: UInt64 = 0, high: UInt64 = 0) {
    self.keys = keys
    self.low = low
    self.high = high
  }

  /// The sum of two parts that have no key in common.
  public static func + (a: DigestSum, b: DigestSum) -> DigestSum {
    let (low, carry) = a.low.addingReportingOverflow(b.low)
    return DigestSum(
      keys: a.keys &+ b.keys, low: low, high: a.high &+ b.high &+ (carry ? 1 : 0))
  }
}

/// One key in a digest.
public struct DigestKey: Sendable, Hashable {
  /// The key.
  public var key: [UInt8]
  /// Where its state stands.
  public var position: Position
  /// The fingerprint of key and content.
  public var low: UInt64
  public var high: UInt64

  /// A key.
  public init(key: [UInt8], position: Position, low: UInt64, high: UInt64) {
    self.key = key
    self.position = position
    self.low = low
    self.high = high
  }
}

/// The sums over a part.
public struct DigestAnswer: Sendable, Hashable {
  /// What a part consists of.
  public enum Parts: Sendable, Hashable {
    /// The sums of its 256 parts, by the next byte of the keys' hashes.
    case sums([DigestSum])
    /// All its keys, since they are few.
    case keys([DigestKey])
  }

  /// What the keys are summed at: the feed's head.
  public var position: Position
  /// What the feed holds.
  public var range: FeedRange
  /// The part as a whole.
  public var total: DigestSum
  /// What it consists of.
  public var parts: Parts

  /// An answer.
  public init(position: Position, range: FeedRange, total: DigestSum, parts: Parts) {
    self.position = position
    self.range = range
    self.total = total
    self.parts = parts
  }
}

/// Asks for what keys hold now.
public struct ValuesRequest: Sendable, Hashable {
  /// Who asks.
  public var replica: ReplicaID
  /// Which keys.
  public var keys: [[UInt8]]
  /// Whether large values come apart, by name only; see ``BlobID``.
  public var takesBlobs: Bool
  /// What the remote end calls the caller's keys, for peers in the same process. It does not
  /// travel.
  public var aliases: KnownAliases?

  /// A question for keys.
  public init(replica: ReplicaID, keys: [[UInt8]], takesBlobs: Bool = false) {
    self.takesBlobs = takesBlobs
    self.replica = replica
    self.keys = keys
  }
}

/// What keys hold.
public struct ValuesAnswer: Sendable, Hashable {
  /// One for every key that was ever there, deleted ones among them; absent ones are left out.
  public var entries: [FeedEntry]
  /// How many of the keys, from the first on, this answers: fewer where they were too large.
  public var answered: Int
  /// What the feed holds.
  public var range: FeedRange

  /// An answer.
  public init(entries: [FeedEntry], answered: Int, range: FeedRange) {
    self.entries = entries
    self.answered = answered
    self.range = range
  }
}
