/// The name of a database in a URL, which is also part of a directory's name: so only letters,
/// digits, hyphens and underscores, without percent-encoding.
struct DatabaseName: Hashable, Sendable, CustomStringConvertible {
  /// Longest name in bytes.
  static let longest = 64
  /// Names that are routes of the server.
  static let reserved: Set<String> = ["health", "metrics", "ready"]

  let description: String

  /// The name in a part of a path, which is not decoded.
  /// - Returns: nil unless it is valid.
  init?(_ text: some StringProtocol) {
    let bytes = text.utf8
    guard (1...Self.longest).contains(bytes.count), let first = bytes.first,
      Self.isAlphanumeric(first), bytes.allSatisfy(Self.isAllowed)
    else { return nil }
    let name = String(text)
    guard !Self.reserved.contains(name) else { return nil }
    description = name
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    isAlphanumeric(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}
