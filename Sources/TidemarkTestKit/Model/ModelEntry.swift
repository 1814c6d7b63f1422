public import TidemarkEngine

/// One write to a ``ModelStore``, before or after it got its sequence.
public struct ModelEntry: Sendable, Hashable {
  /// The effect of an entry on its key: put, cache, evict, delete or touch.
  public enum Operation: String, Sendable, Hashable, CaseIterable {
    /// Gives a key a value, labels and a validator hash.
    case put
    /// Gives a key a cached value, of which a server has the original. The store need not keep
    /// older cached values of the key.
    case cache
    /// Removes the value of a key if it is a cached one.
    case evict
    /// Deletes a key and its value.
    case delete
    /// Confirms that a key's value is still valid, and changes nothing else.
    case touch

    /// Whether it comes with a value and labels.
    var givesValue: Bool { self == .put || self == .cache }
  }

  /// The effect of the entry on its key, such as put or delete.
  public var operation: Operation
  /// The key that the entry changes.
  public var key: [UInt8]
  /// The value that the entry gives its key; empty for an entry without value.
  public var value: [UInt8]
  /// The labels that the entry gives its key; empty for an entry without value.
  public var labels: Set<[UInt8]>
  /// The caller's validator hash for the value; empty for none.
  public var hash: [UInt8]
  /// The entry's own time, or its commit time where none was given.
  public var time: Timestamp
  /// The sequence of the entry in the history; 0 before it is written.
  public var sequence: UInt64

  /// Creates an entry for ``ModelStore/write(_:keepingVainDeletes:)``.
  /// - Parameters:
  ///   - operation: what the entry does to its key.
  ///   - key: the key.
  ///   - value: the value, for a put.
  ///   - labels: the labels, for a put.
  ///   - hash: the validator hash; empty for none.
  ///   - time: the entry's own time.
  ///   - sequence: the sequence in the history; the model assigns it.
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

/// A key of a ``ModelStore`` with its value, labels, hash and sequences.
public struct ModelRow: Sendable, Hashable {
  /// The key of the row.
  public var key: [UInt8]
  /// The value of the key.
  public var value: [UInt8]
  /// The labels of the key.
  public var labels: Set<[UInt8]>
  /// The caller's validator hash for the value; empty for none.
  public var hash: [UInt8]
  /// The sequence of the put that wrote the value.
  public var valueSequence: UInt64
  /// The sequence of the key's last entry, touches included.
  public var sequence: UInt64
  /// Whether the value is a cached one, of which a server has the original.
  public var isCached: Bool

  /// Creates a row, to compare a store's answer with the model's.
  /// - Parameters:
  ///   - key: the key.
  ///   - value: its value.
  ///   - labels: its labels.
  ///   - hash: its validator hash; empty for none.
  ///   - valueSequence: the sequence of the put that wrote the value.
  ///   - sequence: the sequence of the key's last entry.
  ///   - isCached: whether the value is a cached one.
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

  /// Whether two rows have the same key, value, labels and hash. Their sequences may differ.
  public func holdsTheSame(as other: ModelRow) -> Bool {
    key.rawSpan.isEqual(to: other.key.rawSpan) && value.rawSpan.isEqual(to: other.value.rawSpan)
      && labels == other.labels && hash == other.hash
  }
}

/// Decides which rows of a ``ModelStore`` a scan returns, and in which order.
public struct ModelQuery: Sendable, Hashable {
  /// The order in which a query returns its rows.
  public enum Order: String, Sendable, Hashable, CaseIterable {
    /// The rows are in the byte order of their keys.
    case key
    /// The rows are in the order of their keys' last entries, touches included.
    case sequence
  }

  /// The query returns only keys that begin with these bytes; empty for all keys.
  public var prefix: [UInt8] = []
  /// The query returns only this key and later ones; nil for no lower bound.
  public var from: [UInt8]?
  /// The query returns only keys before this one; nil for no upper bound.
  public var until: [UInt8]?
  /// The query returns only keys that have all of these labels.
  public var all: Set<[UInt8]> = []
  /// The query returns only keys that have at least one of these labels; empty for no condition.
  public var any: Set<[UInt8]> = []
  /// The query returns only keys that have none of these labels.
  public var none: Set<[UInt8]> = []
  /// The order in which the query returns its rows; by default that of the keys.
  public var order = Order.key
  /// Whether the query returns its rows in the reverse order.
  public var isReversed = false
  /// The most rows that the query returns; nil for all.
  public var limit: Int?

  /// Creates a query for all rows, in the byte order of their keys.
  public init() {}

  /// Whether a row meets the query's conditions, apart from the limit.
  public func matches(_ row: ModelRow) -> Bool {
    guard row.key.starts(with: prefix) else { return false }
    if let from, row.key.lexicographicallyPrecedes(from) { return false }
    if let until, !row.key.lexicographicallyPrecedes(until) { return false }
    return all.isSubset(of: row.labels) && none.isDisjoint(with: row.labels)
      && (any.isEmpty || !any.isDisjoint(with: row.labels))
  }
}
