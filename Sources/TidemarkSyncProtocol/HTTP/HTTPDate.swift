/// Dates in HTTP headers (RFC 9110, 5.6.7): the three forms that a reader must take, and nothing
/// like them: a server that cannot write a date means none that could be guessed.
package enum HTTPDate {
  /// Seconds since 1970.
  /// - Parameter text: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or
  ///   `Sun Nov  6 08:49:37 1994`.
  /// - Returns: nil for anything else. The name of the day is not compared with the date.
  package static func seconds(_ text: String) -> Int64? {
    guard text.utf8.count <= 64 else { return nil }
    let words = text.utf8.split(separator: 0x20, omittingEmptySubsequences: false).map(Array.init)
    switch words.count {
    case 6 where words[0].count == 4 && words[0].last == comma && words[5] == gmt:
      return seconds(year: words[3], 4, month: words[2], day: words[1], time: words[4])
    case 4 where words[0].last == comma && words[3] == gmt:
      let date = words[1].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
      guard date.count == 3 else { return nil }
      return seconds(
        year: Array(date[2]), 2, month: Array(date[1]), day: Array(date[0]), time: words[2])
    case 5 where words[0].count == 3 && words[2].count == 2:
      return seconds(year: words[4], 4, month: words[1], day: words[2], time: words[3])
    // A day of one digit stands behind two spaces.
    case 6 where words[0].count == 3 && words[2].isEmpty && words[3].count == 1:
      return seconds(year: words[5], 4, month: words[1], day: [zero] + words[3], time: words[4])
    default: return nil
    }
  }

  private static let comma = UInt8(ascii: ",")
  private static let zero = UInt8(ascii: "0")
  private static let gmt = Array("GMT".utf8)

  private static let months =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun"].map { Array($0.utf8) }
    + ["Jul", "Aug", "Sep", "Oct", "Nov", "Dec"].map { Array($0.utf8) }

  /// - Parameter digits: those of the year.
  private static func seconds(
    year: [UInt8], _ digits: Int, month: [UInt8], day: [UInt8], time: [UInt8]
  ) -> Int64? {
    let clock = time.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard var year = number(year[...], digits), let month = months.firstIndex(of: month),
      let day = number(day[...], 2), clock.count == 3, let hour = number(clock[0], 2),
      let minute = number(clock[1], 2), let second = number(clock[2], 2),
      hour < 24, minute < 60, second <= 60
    else { return nil }
    // A year of two digits: 1970 to 2069, since years far ahead mean the past.
    if digits == 2 { year += year < 70 ? 2000 : 1900 }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    guard day >= 1, day <= lengths[month] else { return nil }
    let days = days(year: year, month: month + 1, day: day)
    return Int64(days) * 86_400 + Int64(hour * 3_600 + minute * 60 + second)
  }

  /// Days since 1970-01-01 in the Gregorian calendar: Howard Hinnant's `days_from_civil`.
  private static func days(year: Int, month: Int, day: Int) -> Int {
    let year = month <= 2 ? year - 1 : year
    let era = year / 400
    let ofEra = year - era * 400
    let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
  }

  private static func number(_ text: ArraySlice<UInt8>, _ digits: Int) -> Int? {
    guard text.count == digits else { return nil }
    var number = 0
    for digit in text {
      guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
      number = number * 10 + Int(digit - UInt8(ascii: "0"))
    }
    return number
  }
}
