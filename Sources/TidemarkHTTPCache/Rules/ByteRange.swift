internal import TidemarkSyncProtocol

/// The `Range` field of a request that asks for one range of bytes (RFC 9110, 14.1.2 and 14.2).
struct ByteRange: Sendable, Hashable {
  /// The first byte; nil where the last bytes are asked for.
  private let first: Int?
  /// The last byte, or how many of the last; nil for all that come.
  private let last: Int?

  /// - Returns: nil for several ranges, for another unit, and for what is no range.
  init?(_ field: String) {
    let parts = HTTPHeaders.trimmed(field).split(
      separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
    let ends = parts[1].split(separator: "-", omittingEmptySubsequences: false)
      .map { HTTPHeaders.trimmed($0) }
    guard ends.count == 2, ends.contains(where: { !$0.isEmpty }) else { return nil }
    let numbers = ends.map { HTTPHeaders.number($0) }
    guard zip(ends, numbers).allSatisfy({ $0.isEmpty || $1 != nil }) else { return nil }
    (first, last) = (numbers[0], numbers[1])
    if let first, let last, last < first { return nil }
  }

  /// The bytes of a content of that length; nil where it has none of them.
  func resolved(in length: Int) -> Range<Int>? {
    guard let first else {
      let count = min(last ?? 0, length)
      return count > 0 ? length - count..<length : nil
    }
    guard first < length else { return nil }
    return first..<min(length, (last ?? length - 1) + 1)
  }

  /// A field that asks for a range; up to the end where that is the content's.
  static func field(_ range: Range<Int>, of length: Int) -> String {
    "bytes=" + (range.upperBound < length ? range.httpText : "\(range.lowerBound)-")
  }
}

/// The range that an answer has, and the length of all (RFC 9110, 14.4).
struct ContentRange: Sendable, Hashable {
  var range: Range<Int>
  var total: Int

  /// - Returns: nil where either is not told, or makes no sense.
  init?(_ field: String?) {
    guard let field, field.lowercased().hasPrefix("bytes ") else { return nil }
    let parts = HTTPHeaders.trimmed(field.dropFirst(6)).split(
      separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let total = HTTPHeaders.number(parts[1]),
      let range = Range(httpText: parts[0]), range.upperBound <= total
    else { return nil }
    (self.range, self.total) = (range, total)
  }
}

extension Range<Int> {
  /// The first and the last byte, as fields have them.
  var httpText: String { "\(lowerBound)-\(upperBound - 1)" }

  /// - Returns: nil for what is no range.
  init?(httpText text: some StringProtocol) {
    let ends = text.split(separator: "-", omittingEmptySubsequences: false).map {
      HTTPHeaders.number($0)
    }
    guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last else {
      return nil
    }
    self = first..<last + 1
  }
}
