extension Timestamp {
  /// Reads a point in time from a text like `2026-09-01T08:30:00.25+02:00`, as RFC 3339 defines it.
  ///
  /// Years 0000 to 9999 in UTC are read, with any offset, up to nine digits of a fraction, and `t`
  /// and `z` in lower case too. A leap second (second 60, where UTC can have one) becomes the last
  /// nanosecond before it, so that it stays in its day and before all that follows.
  /// - Parameter text: the date and time; nil is returned when it is anything else.
  public init?(rfc3339 text: String) {
    let bytes = Array(text.utf8)
    self.init(rfc3339: bytes.rawSpan)
  }

  /// As ``init(rfc3339:)``, from the text's bytes.
  package init?(rfc3339 bytes: RawSpan) {
    var reader = TimeReader(bytes)
    guard let time = reader.timestamp() else { return nil }
    self = time
  }

  /// This point in time in UTC, after RFC 3339, such as `2026-09-01T06:30:00.25Z`.
  ///
  /// The fraction has as many digits as it needs. The format ends with the year 9999 and begins
  /// with the year 0000; points outside are given as the last or first that it can name.
  public var rfc3339: String {
    var text: [UInt8] = []
    appendRFC3339(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  package func appendRFC3339(to text: inout [UInt8]) {
    // The nearest time that the format can name.
    let first = Timestamp(seconds: Self.firstSecond)
    let last = Timestamp(seconds: Self.lastSecond, nanoseconds: 999_999_999)
    let time = min(max(self, first), last)
    let (day, second) = time.seconds.floorDivided(by: 86_400)
    let date = CivilDate(daysSince1970: Int(day))
    text.appendDigits(date.year, count: 4)
    text.append(UInt8(ascii: "-"))
    text.appendDigits(date.month, count: 2)
    text.append(UInt8(ascii: "-"))
    text.appendDigits(date.day, count: 2)
    text.append(UInt8(ascii: "T"))
    text.appendDigits(Int(second) / 3600, count: 2)
    text.append(UInt8(ascii: ":"))
    text.appendDigits(Int(second) / 60 % 60, count: 2)
    text.append(UInt8(ascii: ":"))
    text.appendDigits(Int(second) % 60, count: 2)
    if time.nanoseconds > 0 {
      text.append(UInt8(ascii: "."))
      text.appendDigits(Int(time.nanoseconds), count: 9)
      while text.last == UInt8(ascii: "0") { text.removeLast() }
    }
    text.append(UInt8(ascii: "Z"))
  }

  /// 0000-01-01T00:00:00Z, in seconds.
  fileprivate static var firstSecond: Int64 { -62_167_219_200 }
  /// 9999-12-31T23:59:59Z, in seconds.
  fileprivate static var lastSecond: Int64 { 253_402_300_799 }
}

/// Reads one RFC 3339 text from left to right; nil from any step means that the text is none.
private struct TimeReader: ~Escapable {
  let bytes: RawSpan
  var offset = 0

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) { self.bytes = bytes }

  mutating func timestamp() -> Timestamp? {
    guard bytes.byteCount >= 20, bytes.byteCount <= 35,
      let year = digits(4), accept("-"), let month = digits(2), accept("-"),
      let day = digits(2), accept("T") || accept("t"),
      let hour = digits(2), hour < 24, accept(":"), let minute = digits(2), minute < 60,
      accept(":"), let second = digits(2), second <= 60,
      let date = CivilDate(year: year, month: month, day: day),
      var nanoseconds = fraction(), let offset = zone(), self.offset == bytes.byteCount
    else { return nil }
    let minutes = date.daysSince1970 * 1440 + hour * 60 + minute - offset  // in UTC
    var seconds = Int64(minutes) * 60 + Int64(second)
    if second == 60 {
      // UTC has leap seconds only at 23:59 of the last day of a month.
      let (day, ofDay) = Int64(minutes).floorDivided(by: 1440)
      guard ofDay == 1439, CivilDate(daysSince1970: Int(day)).isLastOfMonth else { return nil }
      seconds -= 1
      nanoseconds = 999_999_999
    }
    guard seconds >= Timestamp.firstSecond, seconds <= Timestamp.lastSecond else { return nil }
    return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
  }

  /// The nanoseconds of a fraction, 0 when there is none, nil when it is not one.
  private mutating func fraction() -> UInt32? {
    guard accept(".") else { return 0 }
    var value: UInt32 = 0
    var count = 0
    while let digit = digits(1) {
      guard count < 9 else { return nil }
      value = value * 10 + UInt32(digit)
      count += 1
    }
    guard count > 0 else { return nil }
    for _ in count..<9 { value *= 10 }
    return value
  }

  /// The minutes by which local time is ahead of UTC.
  private mutating func zone() -> Int? {
    if accept("Z") || accept("z") { return 0 }
    let isBehind = accept("-")
    guard isBehind || accept("+"), let hour = digits(2), hour < 24, accept(":"),
      let minute = digits(2), minute < 60
    else { return nil }
    return (isBehind ? -1 : 1) * (hour * 60 + minute)
  }

  @inline(__always)
  private mutating func digits(_ count: Int) -> Int? {
    guard count <= bytes.byteCount - offset else { return nil }
    var value = 0
    for i in 0..<count {
      let digit = bytes.byte(offset + i) &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value * 10 + Int(digit)
    }
    offset += count
    return value
  }

  @inline(__always)
  private mutating func accept(_ character: Unicode.Scalar) -> Bool {
    guard offset < bytes.byteCount, bytes.byte(offset) == UInt8(truncatingIfNeeded: character.value)
    else { return false }
    offset += 1
    return true
  }
}

extension Int64 {
  /// Quotient rounded down, and remainder from 0.
  fileprivate func floorDivided(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

extension [UInt8] {
  /// Appends a number in decimal, filled up with zeros in front.
  fileprivate mutating func appendDigits(_ value: Int, count: Int) {
    var scale = 1
    for _ in 1..<count { scale *= 10 }
    while scale > 0 {
      append(UInt8(ascii: "0") + UInt8(value / scale % 10))
      scale /= 10
    }
  }
}
