public import TidemarkEngine

/// A query for entries of a store: the keys, labels and times that entries must have, and their
/// order.
///
/// ```swift
/// var query = EntryQuery(prefix: "note/", labels: .all("inbox").not("done"))
/// query.descending = true
/// query.limit = 20
/// ```
public struct EntryQuery: Sendable, Hashable {
  /// The property by which a query sorts its entries.
  public enum Order: Sendable, Hashable {
    /// By key, in byte order, as the index stores them. The other orders first collect and sort all
    /// entries.
    case key
    /// By the sequence of the key's newest entry, which is the order of the last writes.
    case sequence
    /// By the entry's own time, or by its commit time where the writer gave none.
    case time
  }

  /// Only entries whose keys begin with this prefix; the empty key finds all.
  public var prefix: Key
  /// The smallest key to return, in byte order; nil for no lower bound.
  public var from: Key?
  /// Only entries whose keys are less than this one, in byte order; nil for no upper bound.
  public var upTo: Key?
  /// Only entries whose labels meet this filter.
  public var labels: LabelFilter
  /// Only entries of this time or later; nil for no lower bound. An entry's own time counts, or its
  /// commit time where it has none.
  public var since: Timestamp?
  /// Only entries before this time; nil for no upper bound. An entry's own time counts, or its
  /// commit time where it has none.
  public var until: Timestamp?
  /// The property by which the entries are sorted; the key by default.
  public var order: Order
  /// Whether the greatest key, sequence or time comes first; false by default.
  public var descending: Bool
  /// The most entries to return; nil for all.
  public var limit: Int?
  /// Whether the entries hold their values; true by default. With false no values are read.
  public var values: Bool

  /// Creates a query. Without parameters it finds every entry, in the order of keys.
  /// - Parameters:
  ///   - prefix: only entries whose keys begin with this; the default finds all.
  ///   - from: the smallest key to return; nil for no lower bound.
  ///   - upTo: only entries whose keys are less than this one; nil for no upper bound.
  ///   - labels: only entries whose labels meet this filter.
  ///   - since: only entries of this time or later; nil for no lower bound.
  ///   - until: only entries before this time; nil for no upper bound.
  ///   - order: the property by which the entries are sorted.
  ///   - descending: whether the greatest comes first.
  ///   - limit: the most entries to return; nil for all.
  ///   - values: whether the entries hold their values.
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
