/// Asks for digests: sums of hashes over parts of the keys and their contents at one position. Both
/// sides of a comparison compute them, and only look into parts whose sums differ.
public struct DigestRequest: Sendable, Hashable {
  /// The id of the replica that compares its entries with the feed.
  public var replica: ReplicaID
  /// The entries that the digests cover.
  public var scope: SyncScope
  /// The parts of the keys for which the caller wants digests. A path selects the keys whose hashes
  /// begin with its bytes; the empty path selects all keys. The paths are in byte order, and no
  /// path lies within another.
  public var paths: [[UInt8]]
  /// The back end's ids for the caller's keys. Only peers in the same process use them; they are
  /// never sent over the network.
  public var aliases: KnownAliases?

  /// Creates a request for digests.
  /// - Parameters:
  ///   - replica: the replica that compares.
  ///   - scope: which entries the digests cover.
  ///   - paths: the parts; the default is one part with all keys.
  public init(replica: ReplicaID, scope: SyncScope = .everything, paths: [[UInt8]] = [[]]) {
    self.replica = replica
    self.scope = scope
    self.paths = paths
  }
}

/// The digest of some keys: equal sums mean equal keys with equal contents.
public struct DigestSum: Sendable, Hashable {
  /// How many keys the digest covers.
  public var keys: UInt64
  /// The sum of the fingerprints of all keys in the part, modulo 2^128. Its order does not matter.
  public var sum: UInt128

  /// Creates a digest; the default is the digest of no keys.
  /// - Parameters:
  ///   - keys: how many keys it covers.
  ///   - sum: the sum of the keys' fingerprints, modulo 2^128.
  public init(keys: UInt64 = 0, sum: UInt128 = 0) {
    self.keys = keys
    self.sum = sum
  }

  /// Returns the digest of two parts together. The parts must have no key in common.
  public static func + (a: DigestSum, b: DigestSum) -> DigestSum {
    DigestSum(keys: a.keys &+ b.keys, sum: a.sum &+ b.sum)
  }
}

/// One key of a small part in a ``DigestAnswer``, with the fingerprint of its content.
public struct DigestKey: Sendable, Hashable {
  /// The bytes of the key.
  public var key: [UInt8]
  /// The position of the feed's entry that gave the key its current content.
  public var position: FeedPosition
  /// A 128-bit hash of the key and its content. Equal fingerprints mean equal contents.
  public var fingerprint: UInt128

  /// Creates an item of a digest for one key.
  /// - Parameters:
  ///   - key: the bytes of the key.
  ///   - position: the entry that gave the key its current content.
  ///   - fingerprint: the hash of the key and its content.
  public init(key: [UInt8], position: FeedPosition, fingerprint: UInt128) {
    self.key = key
    self.position = position
    self.fingerprint = fingerprint
  }
}

/// The digest of one part of the keys: the sum of the whole part, and either sums of its parts or a
/// list of its keys.
public struct DigestPart: Sendable, Hashable {
  /// The details of a ``DigestPart``, which lead a comparison to the keys that differ.
  public enum Content: Sendable, Hashable {
    /// The sums of the 256 parts into which the next byte of the keys' hashes divides this part.
    case sums([DigestSum])
    /// Every key of the part, if the part has few keys.
    case keys([DigestKey])
  }

  /// The digest of all keys of the part.
  public var total: DigestSum
  /// The sums of the part's parts, or a list of its keys if they are few.
  public var content: Content

  /// Creates the digest of a part.
  /// - Parameters:
  ///   - total: the digest of all keys of the part.
  ///   - content: the sums of the part's parts, or its keys.
  public init(total: DigestSum, content: Content) {
    self.total = total
    self.content = content
  }
}

/// The answer to a ``DigestRequest``: the digests of the requested parts at one position.
public struct DigestAnswer: Sendable, Hashable {
  /// The feed's end at the time of the answer. The digests describe the keys at this position.
  public var position: FeedPosition
  /// The range of the feed at the time of the answer.
  public var range: FeedRange
  /// The digests of the request's paths, from the first on. There is at least one, and fewer than
  /// requested if all would exceed one message.
  public var parts: [DigestPart]
  /// A hash of the entries that the caller's authorization reaches, as in ``PullAnswer/reach``.
  public var reach: UInt64?

  /// Creates the answer to a request for digests.
  /// - Parameters:
  ///   - position: the position at which the digests hold.
  ///   - range: the range of the feed now.
  ///   - parts: the digests of the request's first paths.
  ///   - reach: a hash of what the authorization reaches; nil if the peer does not tell.
  public init(
    position: FeedPosition, range: FeedRange, parts: [DigestPart], reach: UInt64? = nil
  ) {
    self.reach = reach
    self.position = position
    self.range = range
    self.parts = parts
  }
}

/// Asks for the current contents of some keys.
public struct ValuesRequest: Sendable, Hashable {
  /// The id of the replica that asks for the contents.
  public var replica: ReplicaID
  /// The keys whose current contents the caller wants.
  public var keys: [[UInt8]]
  /// Whether the answer has references in place of large values, which the caller downloads
  /// separately; see ``SyncContent/blob``.
  public var takesBlobs: Bool
  /// The back end's ids for the caller's keys. Only peers in the same process use them; they are
  /// never sent over the network.
  public var aliases: KnownAliases?

  /// Creates a request for the current contents of some keys.
  /// - Parameters:
  ///   - replica: the replica that asks.
  ///   - keys: the keys.
  ///   - takesBlobs: whether large values become references.
  public init(replica: ReplicaID, keys: [[UInt8]], takesBlobs: Bool = false) {
    self.takesBlobs = takesBlobs
    self.replica = replica
    self.keys = keys
  }
}

/// The answer to a ``ValuesRequest``: the current contents of the keys.
public struct ValuesAnswer: Sendable, Hashable {
  /// One entry for each key that has a value or a tombstone. Absent keys have none.
  public var entries: [FeedEntry]
  /// How many of the request's keys this answer covers, from the first on. It covers fewer than all
  /// if values are large.
  public var answered: Int
  /// The range of the feed at the time of the answer.
  public var range: FeedRange
  /// A hash of the entries that the caller's authorization reaches, as in ``PullAnswer/reach``.
  public var reach: UInt64?

  /// Creates the answer to a request for contents.
  /// - Parameters:
  ///   - entries: one for each key that has a value or a tombstone.
  ///   - answered: how many of the request's keys are covered, from the first on.
  ///   - range: the range of the feed now.
  ///   - reach: a hash of what the authorization reaches; nil if the peer does not tell.
  public init(
    entries: [FeedEntry], answered: Int, range: FeedRange, reach: UInt64? = nil
  ) {
    self.reach = reach
    self.entries = entries
    self.answered = answered
    self.range = range
  }
}
