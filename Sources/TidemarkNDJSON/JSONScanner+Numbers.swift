internal import TidemarkEngine

extension JSONScanner {
  /// Passes over a number, of any size and precision.
  /// - Returns: whether it is a plain whole number: digits only, perhaps behind a minus.
  @discardableResult
  package mutating func skipNumber() throws(JSONError) -> Bool {
    let start = offset
    var isWhole = true
    if next() == UInt8(ascii: "-") { offset += 1 }
    if next() == UInt8(ascii: "0") {
      offset += 1
      if isDigit(next()) { throw JSONError(.badNumber, at: start) }
    } else {
      try skipDigits(start)
    }
    if next() == UInt8(ascii: ".") {
      offset += 1
      isWhole = false
      try skipDigits(start)
    }
    if next() | 0x20 == UInt8(ascii: "e") {
      offset += 1
      isWhole = false
      if next() == UInt8(ascii: "+") || next() == UInt8(ascii: "-") { offset += 1 }
      try skipDigits(start)
    }
    return isWhole
  }

  /// The value of the digits from `start` to `offset`, nil when above `limit`.
  package func wholeNumber(from start: Int, atMost limit: UInt64) -> UInt64? {
    var value: UInt64 = 0
    for position in start..<offset {
      let digit = UInt64(bytes.byte(position) &- UInt8(ascii: "0"))
      let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, carry) = scaled.addingReportingOverflow(digit)
      guard !overflow, !carry, sum <= limit else { return nil }
      value = sum
    }
    return value
  }

  private mutating func skipDigits(_ start: Int) throws(JSONError) {
    guard isDigit(next()) else {
      throw offset < bytes.byteCount
        ? JSONError(.badNumber, at: start) : JSONError(.endsEarly, at: offset)
    }
    repeat { offset += 1 } while isDigit(next())
  }

  @inline(__always)
  private func next() -> UInt8 {
    offset < bytes.byteCount ? bytes.byte(offset) : 0
  }

  @inline(__always)
  private func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }
}
