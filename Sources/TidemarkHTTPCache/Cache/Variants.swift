internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The list that stands under an address whose responses depend on fields of the request.
struct Variants: Sendable, Hashable {
  private static let mark = "tidemark-http-vary 1"

  let vary: Vary
  /// Tells this list from any other one of the address.
  private let number: UInt64
  /// The ends of the keys of the variants, the newest last.
  private var ends: [String] = []

  init(vary: Vary) {
    self.vary = vary
    number = UInt64.random(in: .min ... .max)
  }

  /// - Returns: nil for bytes that are no such list.
  init?(_ bytes: [UInt8]) {
    guard bytes.count <= 65_536, bytes.starts(with: Array(Self.mark.utf8)) else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    guard lines.count >= 3, lines[0] == Self.mark, let number = UInt64(lines[1], radix: 16),
      let vary = Vary(names: HTTPHeaders.list(lines[2]))
    else { return nil }
    self.vary = vary
    self.number = number
    ends = Array(lines.dropFirst(3))
  }

  func encoded() -> [UInt8] {
    let lines = [
      Self.mark, String(number, radix: 16), vary.names.joined(separator: ","),
    ]
    return Array((lines + ends).joined(separator: "\n").utf8)
  }

  /// The key of the variant for a request.
  func key(_ key: Key, _ headers: [String: String]) -> Key {
    let hash = SHA256.hash(Array(vary.selecting(headers).utf8).rawSpan).prefix(16)
    return Key(
      key.bytes + Array("#\(String(number, radix: 16))-\(AttachmentID.text(Array(hash)))".utf8))
  }

  func keys(_ key: Key) -> [Key] { ends.map { Key(key.bytes + Array($0.utf8)) } }

  /// Notes a variant; the oldest ones make room.
  mutating func add(_ variant: Key, after key: Key, most: Int) -> (isNew: Bool, dropped: [Key]) {
    let end = String(decoding: variant.bytes.dropFirst(key.bytes.count), as: UTF8.self)
    guard !ends.contains(end) else { return (false, []) }
    ends.append(end)
    let dropped = ends.prefix(max(0, ends.count - most))
    ends.removeFirst(dropped.count)
    return (true, dropped.map { Key(key.bytes + Array($0.utf8)) })
  }
}
