internal import TidemarkEngine

/// Numbers and positions as text.
enum WireText {
  /// The number that sixteen lower-case hexadecimal digits are.
  static func word(_ digits: ArraySlice<UInt8>) -> UInt64? {
    guard digits.count == 16 else { return nil }
    var word: UInt64 = 0
    for digit in digits {
      guard let value = Hex.value(digit) else { return nil }
      word = word << 4 | UInt64(value)
    }
    return word
  }

  /// A whole number without sign and without zeros in front.
  static func decimal(_ digits: ArraySlice<UInt8>) -> UInt64? {
    guard !digits.isEmpty, digits.count == 1 || digits.first != UInt8(ascii: "0") else {
      return nil
    }
    var number: UInt64 = 0
    for digit in digits {
      let value = digit &- UInt8(ascii: "0")
      let (scaled, overflow) = number.multipliedReportingOverflow(by: 10)
      let (sum, carry) = scaled.addingReportingOverflow(UInt64(value))
      guard value < 10, !overflow, !carry else { return nil }
      number = sum
    }
    return number
  }

  /// Sixteen hexadecimal digits of epoch, a hyphen, the offset.
  static func position(_ text: [UInt8]) -> Position? {
    guard text.count >= 18, text[16] == UInt8(ascii: "-"), let epoch = word(text[..<16]),
      let offset = decimal(text[17...])
    else { return nil }
    return Position(epoch: epoch, offset: offset)
  }

  /// Thirty-two hexadecimal digits of replica, a dot, the sequence.
  static func operation(_ text: [UInt8]) -> OperationID? {
    guard text.count >= 34, text[32] == UInt8(ascii: "."),
      let replica = ReplicaID(String(decoding: text[..<32], as: UTF8.self)),
      let sequence = decimal(text[33...])
    else { return nil }
    return OperationID(replica: replica, sequence: sequence)
  }

  /// Appends sixteen lower-case hexadecimal digits.
  static func append(word: UInt64, to text: inout [UInt8]) {
    for shift in stride(from: UInt64(60), through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: word >> shift & 15)
      text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }
}
