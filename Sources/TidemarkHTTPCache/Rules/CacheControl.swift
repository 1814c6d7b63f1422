internal import TidemarkSyncProtocol

/// The directives of a `Cache-Control` field (RFC 9111, 5.2), of a request or a response.
struct CacheControl: Sendable {
  /// Longest field that is looked at.
  static let longest = 16_384
  /// The most seconds that a directive can say: what is more means this (RFC 9111, 1.2.2).
  static let mostSeconds: Int64 = 1 << 31

  /// The arguments by names in lower case; the first of a name counts (RFC 9111, 4.2.1).
  private var directives: [String: String?] = [:]
  /// Whether the field is longer than anybody needs: then nothing is known of what it says.
  let isTooLong: Bool

  /// - Parameter field: all lines, joined with commas; nil where there are none.
  init(_ field: String?) {
    let bytes = Array((field ?? "").utf8.prefix(Self.longest + 1))
    isTooLong = bytes.count > Self.longest
    guard !isTooLong else { return }
    for part in Self.split(bytes) { add(part) }
  }

  /// Whether there is a directive, whatever it says.
  func has(_ name: String) -> Bool { directives[name] != nil }

  /// The seconds of a directive.
  /// - Returns: nil where there is no such directive; zero where what it says is no number, so that
  ///   it keeps nothing fresh (RFC 9111, 4.2.1).
  func seconds(_ name: String) -> Int64? {
    guard let argument = directives[name] else { return nil }
    return argument.flatMap { Self.seconds(of: $0) } ?? 0
  }

  /// Whether a directive stands there without an argument.
  func isBare(_ name: String) -> Bool { directives[name] == .some(nil) }

  /// A number of seconds; nil for anything but digits.
  static func seconds(of text: String) -> Int64? {
    guard HTTPHeaders.isDigits(text) else { return nil }
    return min(mostSeconds, Int64(text) ?? mostSeconds)
  }

  /// The parts between commas that stand in no quotes.
  /// - Parameter escapes: whether a backslash within quotes takes the next byte as it is.
  static func split(_ bytes: [UInt8], escapes: Bool = true) -> [[UInt8]] {
    var parts: [[UInt8]] = [[]]
    var isQuoted = false
    var isEscaped = false
    for byte in bytes {
      if byte == UInt8(ascii: ","), !isQuoted {
        parts.append([])
        continue
      }
      if byte == UInt8(ascii: "\""), !isEscaped { isQuoted.toggle() }
      isEscaped = escapes && isQuoted && byte == UInt8(ascii: "\\") && !isEscaped
      parts[parts.count - 1].append(byte)
    }
    return parts
  }

  private mutating func add(_ part: [UInt8]) {
    let text = HTTPHeaders.trimmed(String(decoding: part, as: UTF8.self))
    let equals = text.firstIndex(of: "=")
    let name = text[..<(equals ?? text.endIndex)].lowercased()
    guard !name.isEmpty, directives[name] == nil else { return }
    guard let equals else {
      directives[name] = .some(nil)
      return
    }
    var argument = text[text.index(after: equals)...]
    // Both forms of an argument mean the same (RFC 9111, 5.2).
    if argument.count >= 2, argument.first == "\"", argument.last == "\"" {
      argument = argument.dropFirst().dropLast()
    }
    directives[name] = .some(String(argument))
  }
}
