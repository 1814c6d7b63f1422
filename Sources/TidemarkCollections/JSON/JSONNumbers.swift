internal import TidemarkEngine

/// Numbers of JSON, read from their digits.
enum JSONNumbers {
  /// The value of a whole number; nil when the text says another one, or one out of bounds.
  ///
  /// `1.0` and `1e2` are whole numbers, too: other writers may write them so.
  static func integer<Number: FixedWidthInteger>(
    _ text: ArraySlice<UInt8>, _ type: Number.Type
  ) -> Number? {
    if let number = plain(text, type) { return number }
    guard text.contains(where: { $0 == UInt8(ascii: ".") || $0 | 0x20 == UInt8(ascii: "e") }),
      let number = double(text)
    else { return nil }
    return Number(exactly: number)
  }

  private static func plain<Number: FixedWidthInteger>(
    _ text: ArraySlice<UInt8>, _ type: Number.Type
  ) -> Number? {
    let isNegative = text.first == UInt8(ascii: "-")
    var value: Number = 0
    for byte in isNegative ? text.dropFirst() : text {
      guard byte &- UInt8(ascii: "0") < 10, let digit = Number(exactly: byte &- UInt8(ascii: "0"))
      else { return nil }
      let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, carry) =
        isNegative
        ? scaled.subtractingReportingOverflow(digit) : scaled.addingReportingOverflow(digit)
      guard !overflow, !carry else { return nil }
      value = sum
    }
    return value
  }

  /// The nearest `Double`; nil when the number is too large for one.
  static func double(_ text: ArraySlice<UInt8>) -> Double? {
    exact(text) ?? Double(String(decoding: text, as: UTF8.self)).flatMap { $0.isFinite ? $0 : nil }
  }

  /// The powers of ten that a `Double` holds exactly.
  private static let powers: [Double] = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
    1e18, 1e19, 1e20, 1e21, 1e22,
  ]

  /// A number of few digits, by one exact division: W. D. Clinger, "How to read floating point
  /// numbers accurately", 1990, the fast case.
  private static func exact(_ text: ArraySlice<UInt8>) -> Double? {
    guard text.count <= 17 else { return nil }
    let isNegative = text.first == UInt8(ascii: "-")
    var digits: UInt64 = 0
    var places = -1
    for byte in isNegative ? text.dropFirst() : text {
      if byte == UInt8(ascii: ".") {
        places = 0
        continue
      }
      guard byte &- UInt8(ascii: "0") < 10 else { return nil }
      digits = digits &* 10 &+ UInt64(byte &- UInt8(ascii: "0"))
      if places >= 0 { places += 1 }
    }
    guard digits < 1 << 53 else { return nil }
    let value = Double(digits) / powers[max(0, places)]
    return isNegative ? -value : value
  }

  /// Appends the shortest text that is read as the same number.
  /// - Returns: false when JSON has none: for infinities and what is no number.
  static func append(
    _ value: some BinaryFloatingPoint & CustomStringConvertible, to text: inout [UInt8]
  ) -> Bool {
    guard value.isFinite else { return false }
    let start = text.count
    text.append(contentsOf: value.description.utf8)
    // A whole number is written as one.
    if text.count - start > 2, text[text.count - 1] == UInt8(ascii: "0"),
      text[text.count - 2] == UInt8(ascii: "."), value != 0 || value.sign == .plus
    {
      text.removeLast(2)
    }
    return true
  }
}
