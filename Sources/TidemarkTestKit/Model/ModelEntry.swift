public import TidemarkEngine

/// One write to a ``ModelStore``, before or after it got its sequence.
public struct ModelEntry: Sendable, Hashable {
  /// The operation of the entry.
  public enum Operation: String, Sendable, Hashable, CaseIterable {
    /// Gives a key a value, labels and a validator hash.
    case put
    /// Gives a key a value that a server has: what it replaces of that kind is not kept.
    case cache
    /// Gives up the value of a key, if it is one that a server has.
    case evict
    /// Takes a key away.
    case delete
    /// Says that a key's value is still right, and changes nothing else.
    case touch

    /// Whether it comes with a value and labels.
    var givesValue: Bool { self == .put || self == .cache }
  }

  /// The operation of the entry.
  public var operation: Operation
  /// The key.
  public var key: [UInt8]
  /// The value; empty unless this gives one.
  public var value: [UInt8]
  /// The labels; empty unless this gives a value.
  public var labels: Set<[UInt8]>
  /// The caller's validator hash; empty for none.
  public var hash: [UInt8]
  /// The entry's own time, or its commit time where none was given.
  public var time: Timestamp
  /// Its place in the history; 0 before it has one.
  public var sequence: UInt64

  /// Creates an entry.
  public init(
    _ operation: Operation, _ key: [UInt8], value: [UInt8] = [], labels: Set<[UInt8]> = [],
    hash: [UInt8] = [], time: Timestamp = Timestamp(seconds: 0), sequence: UInt64 = 0
  ) {
    self.operation = operation
    self.key = key
    self.value = value
    self.labels = labels
    self.hash = hash
    self.time = time
    self.sequence = sequence
  }
}

/// A key and what it holds.
public struct ModelRow: Sendable, Hashable {
  /// The key.
  public var key: [UInt8]
  /// The value.
  public var value: [UInt8]
  /// The labels.
  public var labels: Set<[UInt8]>
  /// The caller's validator hash; empty for none.
  public var hash: [UInt8]
  /// The sequence of the put that wrote the value.
  public var valueSequence: UInt64
  /// The sequence of the key's last entry, a touch too.
  public var sequence: UInt64
  /// Whether a server has the value.
  public var isCached: Bool

  /// Creates a row.
  public init(
    key: [UInt8], value: [UInt8], labels: Set<[UInt8]> = [], hash: [UInt8] = [],
    valueSequence: UInt64 = 0, sequence: UInt64 = 0, isCached: Bool = false
  ) {
    self.isCached = isCached
    self.key = key
    self.value = value
    self.labels = labels
    self.hash = hash
    self.valueSequence = valueSequence
    self.sequence = sequence
  }

  /// Whether key, value, labels and hash are the same, whatever the sequences are.
  public func holdsTheSame(as other: ModelRow) -> Bool {
    key.rawSpan.isEqual(to: other.key.rawSpan) && value.rawSpan.isEqual(to: other.value.rawSpan)
      && labels == other.labels && hash == other.hash
  }
}

/// Which keys a scan of a ``ModelStore`` gives, and in which order.
public struct ModelQuery: Sendable, Hashable {
  /// The order of the result.
  public enum Order: String, Sendable, Hashable, CaseIterable {
    /// The bytes of the key.
    case key
    /// The sequence of the key's last entry, a touch too.
    case sequence
  }

  /// Only keys that begin with these bytes.
  public var prefix: [UInt8] = []
  /// Only keys at or after this one.
  public var from: [UInt8]?
  /// Only keys before this one.
  public var until: [UInt8]?
  /// Only keys with all of these labels.
  public var all: Set<[UInt8]> = []
  /// Only keys with one of these labels at least; empty for no condition.
  public var any: Set<[UInt8]> = []
  /// Only keys with none of these labels.
  public var none: Set<[UInt8]> = []
  /// The order of the result.
  public var order = Order.key
  /// Whether the last comes first.
  public var isReversed = false
  /// How many at most; nil for all.
  public var limit: Int?

  /// Creates a query for everything, in the order of the keys.
  public init() {}

  /// Whether a row is among those asked for, apart from the limit.
  public func matches(_ row: ModelRow) -> Bool {
    guard row.key.starts(with: prefix) else { return false }
    if let from, row.key.lexicographicallyPrecedes(from) { return false }
    if let until, !row.key.lexicographicallyPrecedes(until) { return false }
    return all.isSubset(of: row.labels) && none.isDisjoint(with: row.labels)
      && (any.isEmpty || !any.isDisjoint(with: row.labels))
  }
}
