/// Parses and checks values of HTTP headers (RFC 9110) from untrusted servers.
package enum HTTPHeaders {
  /// Most bytes of a value; longer ones are not parsed.
  package static let valueBytes = 1_024
  /// The longest `Retry-After` that is obeyed, in seconds.
  package static let retryAfterSeconds: UInt32 = 86_400

  /// The length in `Content-Length`.
  /// - Returns: nil for what is no length; a list of equal lengths is one (RFC 9110, 8.6).
  package static func contentLength(_ value: String) -> Int? {
    guard value.utf8.count <= valueBytes else { return nil }
    var length: Int?
    for part in value.split(separator: ",", omittingEmptySubsequences: false) {
      guard let number = number(trimmed(part)), length == nil || length == number else {
        return nil
      }
      length = number
    }
    return length
  }

  /// The media type in `Content-Type`, in lower case and without parameters.
  /// - Returns: nil for what is no media type.
  package static func mediaType(_ value: String) -> String? {
    guard value.utf8.count <= valueBytes else { return nil }
    let type = trimmed(value.prefix { $0 != ";" })
    let parts = type.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy(isToken) else { return nil }
    return type.lowercased()
  }

  /// For how many seconds `Retry-After` asks, as a number or as a date.
  /// - Parameters:
  ///   - value: the header.
  ///   - now: seconds since 1970.
  /// - Returns: at most ``retryAfterSeconds``; 0 for a date gone by; nil for neither.
  package static func retryAfter(_ value: String, now: Int64) -> UInt32? {
    guard value.utf8.count <= valueBytes else { return nil }
    let text = trimmed(value)
    if isDigits(text) {
      // A number with too many digits is also more than the bound.
      return UInt32(min(number(text) ?? .max, Int(retryAfterSeconds)))
    }
    guard let date = HTTPDate.seconds(value) else { return nil }
    let (left, isOver) = date.subtractingReportingOverflow(now)
    guard !isOver, left > 0 else { return 0 }
    return UInt32(min(left, Int64(retryAfterSeconds)))
  }

  /// Whether a text can be a header's value, and cannot inject other headers: visible ASCII, and
  /// spaces or tabs that are not at its ends.
  package static func isValue(_ value: String) -> Bool {
    let bytes = value.utf8
    guard let first = bytes.first, let last = bytes.last, bytes.count <= 16_384 else {
      return false
    }
    return !isSpace(first) && !isSpace(last)
      && bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7f || $0 == 0x09 }
  }

  /// Whether a text can be the name of a header or a method (RFC 9110, 5.6.2).
  package static func isToken(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(isTokenByte)
  }

  // MARK: Parts

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  /// A text without spaces and tabs at its ends.
  package static func trimmed(_ text: some StringProtocol) -> String {
    let start = text.drop { $0 == " " || $0 == "\t" }
    let end = start.lastIndex { $0 != " " && $0 != "\t" }
    return end.map { String(start[...$0]) } ?? ""
  }

  /// The members of a list, trimmed, without empty ones.
  package static func list(_ text: String) -> [String] {
    text.split(separator: ",").map { trimmed($0) }.filter { !$0.isEmpty }
  }

  /// Whether a text is digits, and at least one.
  package static func isDigits(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
  }

  /// The number that a text of digits only means.
  /// - Parameter count: how many digits it may have.
  package static func number(
    _ text: some StringProtocol, digits count: ClosedRange<Int> = 1...18
  ) -> Int? {
    count.contains(text.utf8.count) && isDigits(text) ? Int(text) : nil
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
