public import TidemarkEngine

/// Which entries are wanted, and in which order.
///
/// ```swift
/// var query = EntryQuery(prefix: "note/", labels: .all("inbox").not("done"))
/// query.descending = true
/// query.limit = 20
/// ```
public struct EntryQuery: Sendable, Hashable {
  /// By what entries are ordered.
  public enum Order: Sendable, Hashable {
    /// By key, in byte order: no sorting, whatever the size of the store.
    case key
    /// By when they were last written: the sequence of a key's newest entry.
    case sequence
    /// By the entries' own time, or, where they have none, the time of their commit.
    case time
  }

  /// Only keys that begin with this.
  public var prefix: Key
  /// Only this key and those behind it in byte order.
  public var from: Key?
  /// Only keys before this one in byte order.
  public var upTo: Key?
  /// Only entries with these labels.
  public var labels: LabelFilter
  /// Only entries whose own time is this or later; where they have none, that of their commit.
  public var since: Timestamp?
  /// Only entries whose time, likewise, is before this one.
  public var until: Timestamp?
  /// By what entries are ordered.
  public var order: Order
  /// Whether the largest comes first.
  public var descending: Bool
  /// Most entries to return; nil for all.
  public var limit: Int?
  /// Whether values are read too.
  public var values: Bool

  /// A query; without parameters, everything in the order of keys.
  /// - Parameters:
  ///   - prefix: only keys that begin with this.
  ///   - from: only this key and those behind it.
  ///   - upTo: only keys before this one.
  ///   - labels: only entries with these labels.
  ///   - since: only entries whose own time, or else that of their commit, is this or later.
  ///   - until: only entries whose time is before this one.
  ///   - order: by what entries are ordered.
  ///   - descending: whether the largest comes first.
  ///   - limit: most entries to return.
  ///   - values: whether values are read too.
  public init(
    prefix: some BytesConvertible = "", from: Key? = nil, upTo: Key? = nil,
    labels: LabelFilter = .everything, since: Timestamp? = nil, until: Timestamp? = nil,
    order: Order = .key, descending: Bool = false, limit: Int? = nil, values: Bool = true
  ) {
    self.prefix = Key(prefix)
    self.from = from
    self.upTo = upTo
    self.labels = labels
    self.since = since
    self.until = until
    self.order = order
    self.descending = descending
    self.limit = limit
    self.values = values
  }

  /// Whether it asks for every key.
  var isUnrestricted: Bool {
    prefix.bytes.isEmpty && from == nil && upTo == nil && labels.isEmpty && since == nil
      && until == nil
  }

  /// The engine's form; nil when no key can match.
  var scanQuery: ScanQuery? {
    var query = ScanQuery(prefix: prefix.bytes)
    if let from, from > prefix || prefix.bytes.isEmpty {
      guard prefix.bytes.isEmpty || from.hasPrefix(prefix) else { return nil }
      query.from = .including(from.bytes)
    }
    if let upTo {
      guard upTo > prefix else { return nil }
      if upTo.hasPrefix(prefix) { query.upTo = .excluding(upTo.bytes) }
    }
    if let from, let upTo, from >= upTo { return nil }
    query.labels = labels.query
    query.since = since
    query.until = until
    query.order =
      switch order {
      case .key: .key
      case .sequence: .sequence
      case .time: .time
      }
    query.descending = descending
    return query
  }
}
