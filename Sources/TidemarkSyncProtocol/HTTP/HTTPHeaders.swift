/// Reads and checks values of HTTP headers (RFC 9110), which may be anything.
package enum HTTPHeaders {
  /// Longest value that is looked at.
  package static let valueBytes = 1_024
  /// Most seconds that `Retry-After` may ask for.
  package static let retryAfterSeconds: UInt32 = 86_400

  /// The length in `Content-Length`.
  /// - Returns: nil for what is no length; a list of equal lengths is one (RFC 9110, 8.6).
  package static func contentLength(_ value: String) -> Int? {
    guard value.utf8.count <= valueBytes else { return nil }
    var length: Int?
    for part in value.utf8.split(separator: comma, omittingEmptySubsequences: false) {
      guard let number = digits(trimmed(part), atMost: 18) else { return nil }
      guard length == nil || length == number else { return nil }
      length = number
    }
    return length
  }

  /// The media type in `Content-Type`, in lower case and without parameters.
  /// - Returns: nil for what is no media type.
  package static func mediaType(_ value: String) -> String? {
    guard value.utf8.count <= valueBytes else { return nil }
    let type = trimmed(value.utf8.prefix { $0 != UInt8(ascii: ";") })
    let parts = type.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isTokenByte) }) else {
      return nil
    }
    return String(decoding: type.map(lowercased), as: UTF8.self)
  }

  /// For how many seconds `Retry-After` asks, as a number or as a date.
  /// - Parameters:
  ///   - value: the header.
  ///   - now: seconds since 1970.
  /// - Returns: at most ``retryAfterSeconds``; 0 for a date gone by; nil for neither.
  package static func retryAfter(_ value: String, now: Int64) -> UInt32? {
    guard value.utf8.count <= valueBytes else { return nil }
    let text = trimmed(value.utf8[...])
    if text.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }), !text.isEmpty {
      // A number with more digits is longer than anybody waits.
      guard let seconds = digits(text, atMost: 18) else { return retryAfterSeconds }
      return UInt32(min(seconds, Int(retryAfterSeconds)))
    }
    guard let date = HTTPDate.seconds(value) else { return nil }
    let (left, isOver) = date.subtractingReportingOverflow(now)
    guard !isOver, left > 0 else { return 0 }
    return UInt32(min(left, Int64(retryAfterSeconds)))
  }

  /// Whether a text can stand as a header's value without becoming anything else: visible ASCII
  /// and single spaces or tabs, not at the ends.
  package static func isValue(_ value: String) -> Bool {
    let bytes = value.utf8
    guard let first = bytes.first, let last = bytes.last, bytes.count <= 16_384 else {
      return false
    }
    return !isSpace(first) && !isSpace(last)
      && bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7f || $0 == 0x09 }
  }

  /// Whether a text can be the name of a header or a method (RFC 9110, 5.6.2).
  package static func isToken(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(isTokenByte)
  }

  // MARK: Parts

  private static let comma = UInt8(ascii: ",")

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
    let start = text.drop(while: isSpace)
    guard let last = start.lastIndex(where: { !isSpace($0) }) else { return start.prefix(0) }
    return start[...last]
  }

  /// The number that digits make, and nothing but digits; nil also when there are more than `most`.
  private static func digits(_ text: Substring.UTF8View, atMost most: Int) -> Int? {
    let significant = text.drop { $0 == UInt8(ascii: "0") }
    guard !text.isEmpty, significant.count <= most else { return nil }
    var number = 0
    for digit in text {
      guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
      number = number * 10 + Int(digit - UInt8(ascii: "0"))
    }
    return number
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  package static func lowercased(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
  }
}
