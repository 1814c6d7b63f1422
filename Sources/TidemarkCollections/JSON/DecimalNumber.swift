internal import TidemarkEngine
internal import TidemarkNDJSON

/// The numbers of JSON that a `Decimal` of Foundation is, whose own coding is an object: a mantissa
/// of eight words of 16 bits, the lowest first, an exponent of ten, and flags.
enum DecimalNumber {
  private struct Fields: Codable {
    var exponent: Int
    var length: Int
    var isNegative: Bool
    var isCompact: Bool
    var mantissa: [UInt16]
  }

  /// The object that a `Decimal` decodes itself from.
  /// - Returns: nil for a number that it does not hold exactly.
  static func fields(ofNumber text: ArraySlice<UInt8>) -> [UInt8]? {
    guard let number = JSONDecimal(text), number.digits.count <= 39 else { return nil }
    var mantissa: UInt128 = 0
    func append(_ digit: UInt8) -> Bool {
      let (scaled, overflow) = mantissa.multipliedReportingOverflow(by: 10)
      let (sum, carry) = scaled.addingReportingOverflow(UInt128(digit))
      mantissa = sum
      return !overflow && !carry
    }
    for digit in number.digits where !append(digit - UInt8(ascii: "0")) { return nil }
    var exponent = mantissa == 0 ? 0 : number.exponent
    while exponent > Int(Int8.max) {
      guard append(0) else { return nil }
      exponent -= 1
    }
    guard exponent >= Int(Int8.min) else { return nil }
    let length = (mantissa.bitWidth - mantissa.leadingZeroBitCount + 15) / 16
    return try? JSONEncoding.encode(
      Fields(
        exponent: exponent, length: length, isNegative: number.isNegative, isCompact: true,
        mantissa: (0..<8).map { UInt16(truncatingIfNeeded: mantissa >> (16 * $0)) }))
  }

  /// The number of the object that a `Decimal` encodes itself as, without an exponent, since few
  /// back ends read one exactly.
  /// - Returns: nil for what is no number.
  static func text(ofFields object: [UInt8]) throws -> [UInt8]? {
    let fields = try JSONDecoding(JSONTape(object)).decode(Fields.self)
    if fields.length == 0, fields.isNegative { return nil }
    var mantissa: UInt128 = 0
    for word in fields.mantissa.prefix(fields.length).reversed() {
      mantissa = mantissa << 16 | UInt128(word)
    }
    guard mantissa > 0 else { return [UInt8(ascii: "0")] }
    let zero = UInt8(ascii: "0")
    var digits = Array(String(mantissa).utf8)
    if fields.exponent >= 0 {
      digits += Array(repeating: zero, count: fields.exponent)
    } else {
      let missing = max(0, 1 - fields.exponent - digits.count)
      digits.insert(contentsOf: repeatElement(zero, count: missing), at: 0)
      digits.insert(UInt8(ascii: "."), at: digits.count + fields.exponent)
      while digits.last == zero { digits.removeLast() }
      if digits.last == UInt8(ascii: ".") { digits.removeLast() }
    }
    return (fields.isNegative ? [UInt8(ascii: "-")] : []) + digits
  }
}
