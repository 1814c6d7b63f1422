internal import TidemarkEngine

/// Dates in HTTP headers (RFC 9110, 5.6.7), in the three forms that a recipient must accept.
/// Nothing similar is accepted: a guess at a malformed date may be wrong.
package enum HTTPDate {
  /// Seconds since 1970.
  /// - Parameter text: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or
  ///   `Sun Nov  6 08:49:37 1994`.
  /// - Returns: nil for anything else. The name of the day is not compared with the date.
  package static func seconds(_ text: String) -> Int64? {
    guard text.utf8.count <= 64 else { return nil }
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    switch words.count {
    case 6 where words[0].count == 4 && words[0].last == "," && words[5] == "GMT":
      return seconds(year: words[3], 4, month: words[2], day: words[1], time: words[4])
    case 4 where words[0].last == "," && words[3] == "GMT":
      let date = words[1].split(separator: "-", omittingEmptySubsequences: false)
      guard date.count == 3 else { return nil }
      return seconds(year: date[2], 2, month: date[1], day: date[0], time: words[2])
    case 5 where words[0].count == 3 && words[2].count == 2:
      return seconds(year: words[4], 4, month: words[1], day: words[2], time: words[3])
    // A day of one digit has two spaces before it.
    case 6 where words[0].count == 3 && words[2].isEmpty && words[3].count == 1:
      return seconds(year: words[5], 4, month: words[1], day: "0\(words[3])", time: words[4])
    default: return nil
    }
  }

  private static let months =
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(separator: " ")

  /// - Parameter digits: how many digits the year must have.
  private static func seconds(
    year: Substring, _ digits: Int, month: Substring, day: Substring, time: Substring
  ) -> Int64? {
    func number(_ text: Substring, _ digits: Int = 2) -> Int? {
      HTTPHeaders.number(text, digits: digits...digits)
    }
    let clock = time.split(separator: ":", omittingEmptySubsequences: false)
    guard var year = number(year, digits), let month = months.firstIndex(of: month),
      let day = number(day), clock.count == 3, let hour = number(clock[0]),
      let minute = number(clock[1]), let second = number(clock[2]),
      hour < 24, minute < 60, second <= 60
    else { return nil }
    // A year of two digits means 1970 to 2069.
    if digits == 2 { year += year < 70 ? 2000 : 1900 }
    return CivilDate(year: year, month: month + 1, day: day).map { date in
      Int64(date.daysSince1970) * 86_400 + Int64(hour * 3_600 + minute * 60 + second)
    }
  }
}
