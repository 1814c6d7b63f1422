internal import TidemarkEngine

/// A few entries of a query, and where the next ones begin.
public struct Page: Sendable {
  /// The entries.
  public var entries: [Entry]
  /// Where the next page begins; nil when there is none.
  public var next: PageCursor?
}

/// Where a page of a query ended, for a later call of ``StoreReader/page(_:limit:after:)``,
/// ``StoreReader/entries(_:after:)`` or ``StoreReader/keys(_:after:)``; also from another process,
/// as text.
///
/// A page cursor names the last entry that was returned, so it stays good whatever is written
/// in between; it belongs to queries of the same order.
public struct PageCursor: Sendable, Hashable {
  let position: ScanPosition

  init(_ position: ScanPosition) { self.position = position }

  /// Nil for the beginning of a query.
  init?(behind position: ScanPosition) {
    if case .start = position { return nil }
    self.position = position
  }

  /// Whether it can continue a query in this order.
  package func fits(_ order: EntryQuery.Order) -> Bool {
    switch (position, order) {
    case (.start, _), (.key, .key), (.sequence, .sequence), (.time, .time): true
    default: false
    }
  }

  /// Where a query goes on; at its beginning when there is no cursor.
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
  /// Reads what ``description`` wrote.
  public init?(_ description: String) {
    guard let kind = description.utf8.first else { return nil }
    let rest = description.dropFirst()
    let parts = rest.split(separator: ".", omittingEmptySubsequences: false)
    switch kind {
    case UInt8(ascii: "k"):
      guard let key = Self.bytes(hexadecimal: rest), !key.isEmpty else { return nil }
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

  /// The cursor as text: letters, digits, dots and hyphens.
  public var description: String {
    switch position {
    case .start: return "s0"
    case .key(let key):
      var text: [UInt8] = [UInt8(ascii: "k")]
      let digits = Array("0123456789abcdef".utf8)
      for byte in key {
        text.append(digits[Int(byte >> 4)])
        text.append(digits[Int(byte & 15)])
      }
      return String(decoding: text, as: UTF8.self)
    case .sequence(let sequence): return "s\(sequence)"
    case .time(let time, let sequence): return "t\(time.seconds).\(time.nanoseconds).\(sequence)"
    }
  }

  private static func bytes(hexadecimal text: Substring) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 2), digits.count <= 2 * Limits.keyBytes else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    for i in stride(from: 0, to: digits.count, by: 2) {
      guard let high = nibble(digits[i]), let low = nibble(digits[i + 1]) else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func nibble(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}

extension PageCursor: Codable {
  /// Decodes the text form.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let cursor = PageCursor(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a cursor")
    }
    self = cursor
  }

  /// Encodes the text form.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
