extension [UInt8] {
  /// The bytes as lower-case hexadecimal digits in ASCII.
  package var hexDigits: [UInt8] {
    var digits: [UInt8] = []
    digits.reserveCapacity(2 * count)
    for byte in self {
      for digit in [byte >> 4, byte & 15] {
        digits.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
      }
    }
    return digits
  }

  /// The bytes that lower-case hexadecimal digits in ASCII stand for; nil for any other text.
  package init?(hexDigits digits: [UInt8]) {
    guard digits.count % 2 == 0 else { return nil }
    self = []
    reserveCapacity(digits.count / 2)
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = Self.value(digits[index]), let low = Self.value(digits[index + 1]) else {
        return nil
      }
      append(high << 4 | low)
    }
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
