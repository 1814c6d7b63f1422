public import TidemarkEngine

/// One page of a query's entries, with the cursor for the next page.
/// ``StoreReader/page(_:limit:after:)`` makes it.
public struct EntryPage: Sendable {
  /// The entries of this page, in the order of the query.
  public var entries: [Entry]
  /// The cursor to pass to `page` for the next page, which may be empty; nil at the end of the
  /// query.
  public var next: PageCursor?
}

/// Where a page of a query ended, for a later call of ``StoreReader/page(_:limit:after:)``,
/// ``StoreReader/entries(_:after:)`` or ``StoreReader/keys(_:after:)``, also in another process.
///
/// A page cursor holds the key, the sequence, or the time and sequence of the last entry that was
/// returned, by the query's order. What follows are greater ones, or lesser where the query is
/// descending, so it stays good whatever is written in between; the order must be the same.
public struct PageCursor: Sendable, Hashable {
  let position: ScanPosition

  /// - Returns: nil for the beginning of a query, which has no cursor.
  init?(behind position: ScanPosition) {
    if case .start = position { return nil }
    self.position = position
  }

  /// Whether the cursor can continue a query in this order.
  package func fits(_ order: EntryQuery.Order) -> Bool {
    switch (position, order) {
    case (.start, _), (.key, .key), (.sequence, .sequence), (.time, .time): true
    default: false
    }
  }

  /// Where a query goes on: behind its cursor, or without one at its beginning.
  static func position(
    _ cursor: PageCursor?, of query: EntryQuery
  ) throws(TidemarkError) -> ScanPosition {
    guard let cursor else { return .start }
    guard cursor.fits(query.order) else {
      throw TidemarkError(
        .invalidArgument, "the page cursor is of a query in another order; begin from the first")
    }
    return cursor.position
  }
}

extension PageCursor: LosslessStringConvertible {
  /// Reads a cursor from the text that ``description`` returned; nil for any other text.
  public init?(_ description: String) {
    guard let kind = description.utf8.first else { return nil }
    let rest = description.dropFirst()
    let parts = rest.split(separator: ".", omittingEmptySubsequences: false)
    switch kind {
    case UInt8(ascii: "k"):
      guard !rest.isEmpty, rest.utf8.count <= 2 * Limits.keyBytes,
        let key = [UInt8](hexDigits: Array(rest.utf8))
      else { return nil }
      position = .key(key)
    case UInt8(ascii: "s"):
      guard let sequence = UInt64(rest) else { return nil }
      position = .sequence(sequence)
    case UInt8(ascii: "t"):
      guard parts.count == 3, let seconds = Int64(parts[0]), let nanoseconds = UInt32(parts[1]),
        nanoseconds < 1_000_000_000, let sequence = UInt64(parts[2])
      else { return nil }
      position = .time(Timestamp(seconds: seconds, nanoseconds: nanoseconds), sequence)
    default: return nil
    }
  }

  /// The cursor as text to store or send: letters, digits, dots and hyphens.
  public var description: String {
    switch position {
    case .start: "s0"
    case .key(let key): "k" + String(decoding: key.hexDigits, as: UTF8.self)
    case .sequence(let sequence): "s\(sequence)"
    case .time(let time, let sequence): "t\(time.seconds).\(time.nanoseconds).\(sequence)"
    }
  }
}

extension PageCursor: Codable {
  /// Decodes a cursor from the text that ``description`` returns.
  /// - Throws: `DecodingError` when the text is not a cursor.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let cursor = PageCursor(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a cursor")
    }
    self = cursor
  }

  /// Encodes the cursor as the text that ``description`` returns.
  public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}

extension StoreReader {
  /// Reads one page of a query's entries.
  ///
  /// ```swift
  /// var page = try store.page(EntryQuery(prefix: "note/"), limit: 20)
  /// while let next = page.next {
  ///   page = try store.page(EntryQuery(prefix: "note/"), limit: 20, after: next)
  /// }
  /// ```
  /// - Parameters:
  ///   - query: which entries; its own limit does not count.
  ///   - limit: most entries of the page, at least 1.
  ///   - cursor: where an earlier page of the query ended; nil for the first.
  /// - Throws: `invalidArgument` when the cursor belongs to a query of another order.
  public func page(
    _ query: EntryQuery = EntryQuery(), limit: Int, after cursor: PageCursor? = nil
  ) throws(TidemarkError) -> EntryPage {
    guard limit > 0 else {
      throw TidemarkError(.invalidArgument, "a page of \(limit) entries; ask for at least 1")
    }
    var query = query
    query.limit = limit
    var rows = try entries(query, after: cursor)
    var entries: [Entry] = []
    while let entry = try rows.next() { entries.append(entry) }
    // Fewer than the limit are the last ones; a full page may be, which the next page tells.
    return EntryPage(entries: entries, next: entries.count == limit ? rows.cursor : nil)
  }
}
