/// Asks for digests: sums of hashes over parts of the keys and what they held at one position. Both
/// sides of a comparison compute them, and look only into parts whose sums differ.
public struct DigestRequest: Sendable, Hashable {
  /// The replica that asks.
  public var replica: ReplicaID
  /// Which entries count.
  public var scope: SyncScope
  /// The parts: a path selects the keys whose hashes begin with its bytes, the empty path all keys.
  /// In byte order, and none within another.
  public var paths: [[UInt8]]
  /// The aliases of the caller's keys, for peers in the same process. Not sent.
  public var aliases: KnownAliases?

  /// A question about parts.
  public init(replica: ReplicaID, scope: SyncScope = .everything, paths: [[UInt8]] = [[]]) {
    self.replica = replica
    self.scope = scope
    self.paths = paths
  }
}

/// The digest of some keys: equal sums mean equal keys with equal contents.
public struct DigestSum: Sendable, Hashable {
  /// How many keys.
  public var keys: UInt64
  /// The sum, modulo 2^128, of the keys' fingerprints.
  public var sum: UInt128

  /// A sum.
  public init(keys: UInt64 = 0, sum: UInt128 = 0) {
    self.keys = keys
    self.sum = sum
  }

  /// The sum of two parts that have no key in common.
  public static func + (a: DigestSum, b: DigestSum) -> DigestSum {
    DigestSum(keys: a.keys &+ b.keys, sum: a.sum &+ b.sum)
  }
}

/// One key in a digest.
public struct DigestKey: Sendable, Hashable {
  /// The key.
  public var key: [UInt8]
  /// The position of the entry that gave it its state.
  public var position: Position
  /// The fingerprint of key and content.
  public var fingerprint: UInt128

  /// A key.
  public init(key: [UInt8], position: Position, fingerprint: UInt128) {
    self.key = key
    self.position = position
    self.fingerprint = fingerprint
  }
}

/// The digest of one part of the keys.
public struct DigestPart: Sendable, Hashable {
  /// The content of a part.
  public enum Content: Sendable, Hashable {
    /// The sums of its 256 parts, by the next byte of the keys' hashes.
    case sums([DigestSum])
    /// All its keys, where they are few.
    case keys([DigestKey])
  }

  /// The sum of the whole part.
  public var total: DigestSum
  /// The content of the part.
  public var content: Content

  /// A part.
  public init(total: DigestSum, content: Content) {
    self.total = total
    self.content = content
  }
}

/// The digests of the parts that were asked for.
public struct DigestAnswer: Sendable, Hashable {
  /// The position as of which the digests are: the feed's head.
  public var position: Position
  /// The range of the feed.
  public var range: FeedRange
  /// The parts of the first paths of the request, at least one: fewer than asked for where all
  /// would be too much for one message.
  public var parts: [DigestPart]
  /// As ``PullAnswer/reach``.
  public var reach: UInt64?

  /// An answer.
  public init(
    position: Position, range: FeedRange, parts: [DigestPart], reach: UInt64? = nil
  ) {
    self.reach = reach
    self.position = position
    self.range = range
    self.parts = parts
  }
}

/// Asks for what keys hold now.
public struct ValuesRequest: Sendable, Hashable {
  /// The replica that asks.
  public var replica: ReplicaID
  /// The keys.
  public var keys: [[UInt8]]
  /// Whether large values are replaced by references, to be downloaded; see ``SyncContent/blob``.
  public var takesBlobs: Bool
  /// The aliases of the caller's keys, for peers in the same process. Not sent.
  public var aliases: KnownAliases?

  /// A question for keys.
  public init(replica: ReplicaID, keys: [[UInt8]], takesBlobs: Bool = false) {
    self.takesBlobs = takesBlobs
    self.replica = replica
    self.keys = keys
  }
}

/// The contents of keys.
public struct ValuesAnswer: Sendable, Hashable {
  /// One for each key that has a value or a tombstone; absent keys are left out.
  public var entries: [FeedEntry]
  /// How many of the request's keys, from the first on, are answered: fewer where values are large.
  public var answered: Int
  /// The range of the feed.
  public var range: FeedRange
  /// As ``PullAnswer/reach``.
  public var reach: UInt64?

  /// An answer.
  public init(
    entries: [FeedEntry], answered: Int, range: FeedRange, reach: UInt64? = nil
  ) {
    self.reach = reach
    self.entries = entries
    self.answered = answered
    self.range = range
  }
}
