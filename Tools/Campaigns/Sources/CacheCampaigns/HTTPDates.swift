/// Dates, tags and ranges of HTTP, written once more: the model shares no code with the cache.
enum HTTPDates {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
  private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]

  private static func isLeap(_ year: Int) -> Bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
  }

  private static func length(_ month: Int, of year: Int) -> Int {
    switch month {
    case 1: isLeap(year) ? 29 : 28
    case 3, 5, 8, 10: 30
    default: 31
    }
  }

  /// - Parameter seconds: since 1970, from then on.
  static func text(_ seconds: Int64) -> String {
    var day = Int(seconds / 86_400)
    let name = days[day % 7]
    var year = 1970
    while day >= (isLeap(year) ? 366 : 365) {
      day -= isLeap(year) ? 366 : 365
      year += 1
    }
    var month = 0
    while day >= length(month, of: year) {
      day -= length(month, of: year)
      month += 1
    }
    let time = [seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60].map { two(Int($0)) }
    return "\(name), \(two(day + 1)) \(months[month]) \(year) \(time.joined(separator: ":")) GMT"
  }

  private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

  /// - Returns: the seconds since 1970 of a date as ``text(_:)`` writes it; nil for another text.
  static func seconds(_ text: String) -> Int64? {
    let words = text.split { $0 == " " || $0 == ":" || $0 == "," }
    guard words.count == 8, let day = Int(words[1]), let year = Int(words[3]),
      let month = months.firstIndex(of: String(words[2])), let hour = Int(words[4]),
      let minute = Int(words[5]), let second = Int(words[6])
    else { return nil }
    let years = (1970..<year).reduce(0) { $0 + (isLeap($1) ? 366 : 365) }
    let total = (0..<month).reduce(years + day - 1) { $0 + length($1, of: year) }
    return Int64(((total * 24 + hour) * 60 + minute) * 60 + second)
  }

  /// A tag without its mark of weakness.
  static func opaque(_ tag: String) -> String {
    tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag
  }

  /// The entity tags of an `If-None-Match` field, without quotes and `W/`. The trial's server makes
  /// none that has a comma.
  static func tags(_ list: String) -> [String] {
    list.split(separator: ",").map { text in
      opaque(String(text.drop { $0 == " " }))
    }
  }

  /// The bytes that a range asks for; nil where there are none of them.
  static func range(_ text: String, of length: Int) -> Range<Int>? {
    let parts = text.dropFirst("bytes=".count).split(
      separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    guard let first = Int(parts[0]) else {
      guard let count = Int(parts[1]), count > 0 else { return nil }
      return max(0, length - count)..<length
    }
    let end = min(length, (Int(parts[1]) ?? length - 1) + 1)
    return first < length && first < end ? first..<end : nil
  }

  /// Whether an answer gives a content, or the part of it that it says it gives.
  static func gives(_ status: Int, _ body: [UInt8], _ contentRange: String?, of content: [UInt8])
    -> Bool
  {
    switch status {
    case 206:
      let numbers = (contentRange ?? "").split { !$0.isNumber }.compactMap { Int($0) }
      guard numbers.count == 3, numbers[2] == content.count, numbers[0] <= numbers[1],
        numbers[1] < content.count
      else { return false }
      return body == Array(content[numbers[0]...numbers[1]])
    case 416: return contentRange == "bytes */\(content.count)" && body.isEmpty
    default: return body == content
    }
  }
}
