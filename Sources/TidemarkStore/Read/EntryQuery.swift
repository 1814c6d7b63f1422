public import TidemarkEngine

/// Which entries of a store are wanted, and in which order.
///
/// ```swift
/// var query = EntryQuery(prefix: "note/", labels: .all("inbox").not("done"))
/// query.descending = true
/// query.limit = 20
/// ```
public struct EntryQuery: Sendable, Hashable {
  /// What entries are sorted by.
  public enum Order: Sendable, Hashable {
    /// By key, in byte order, as in the index. Other orders gather and sort all rows first.
    case key
    /// By the sequence of a key's newest entry.
    case sequence
    /// By the entries' own time, or where they have none the commit time.
    case time
  }

  /// Only keys that begin with this.
  public var prefix: Key
  /// Only this key and greater ones, in byte order.
  public var from: Key?
  /// Only keys less than this one, in byte order.
  public var upTo: Key?
  /// Only entries with these labels.
  public var labels: LabelFilter
  /// Only entries whose own time, or where they have none the commit time, is this or later.
  public var since: Timestamp?
  /// Only entries whose own time, or where they have none the commit time, is before this one.
  public var until: Timestamp?
  /// What entries are sorted by.
  public var order: Order
  /// Whether the greatest comes first.
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
    (self.prefix, self.from, self.upTo) = (Key(prefix), from, upTo)
    (self.labels, self.since, self.until) = (labels, since, until)
    (self.order, self.descending) = (order, descending)
    (self.limit, self.values) = (limit, values)
  }

  /// Whether every key matches; `limit` apart.
  var isUnrestricted: Bool {
    prefix.bytes.isEmpty && from == nil && upTo == nil && labels.isEmpty && since == nil
      && until == nil
  }

  /// The engine's form; nil when no key can match. It is without `limit` and `values`: those who
  /// scan count the rows, and read their values, themselves.
  var scanQuery: ScanQuery? {
    var query = ScanQuery(prefix: prefix.bytes)
    // A `from` up to the prefix excludes none of its keys; one above that does not begin with the
    // prefix lies above them all. Likewise a greater `upTo` excludes none.
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
