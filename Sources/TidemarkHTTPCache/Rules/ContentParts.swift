/// A part of a content that is stored without the rest (RFC 9111, 3.3).
struct ContentPart: Sendable, Hashable {
  /// The bytes of the content that it has.
  var range: Range<Int>
  /// Names its entry among those of its response.
  var number: UInt64
}

/// The parts of one content that are here, by their beginnings.
struct ContentParts: Sendable, Hashable {
  /// Most parts of one content; then neighbours become one, or the shortest goes.
  static let most = 32

  private(set) var all: [ContentPart] = []

  /// Adds a part, and lets those go that lie within it.
  mutating func add(_ part: ContentPart) {
    all.removeAll {
      $0.range.lowerBound >= part.range.lowerBound && $0.range.upperBound <= part.range.upperBound
    }
    all.append(part)
    all.sort { ($0.range.lowerBound, $0.number) < ($1.range.lowerBound, $1.number) }
  }

  mutating func remove(_ part: ContentPart) { all.removeAll { $0 == part } }

  /// The end of what is here without a gap from a byte on.
  func end(from start: Int) -> Int {
    all.reduce(start) { $1.range.lowerBound <= $0 ? max($0, $1.range.upperBound) : $0 }
  }

  /// The next step where there are too many: two neighbours without a gap that are the shortest
  /// together, or the shortest of all.
  var surplus: [ContentPart] {
    guard all.count > Self.most else { return [] }
    let pairs = zip(all, all.dropFirst()).filter { $1.range.lowerBound <= $0.range.upperBound }
    let pair = pairs.min {
      $0.0.range.count + $0.1.range.count < $1.0.range.count + $1.1.range.count
    }
    if let pair { return [pair.0, pair.1] }
    return all.min { $0.range.count < $1.range.count }.map { [$0] } ?? []
  }

  // MARK: Bytes

  /// A line for each.
  func encoded() -> [UInt8] {
    Array(
      all.map { "\($0.range.lowerBound) \($0.range.upperBound) \(String($0.number, radix: 16))\n" }
        .joined().utf8)
  }

  init() {}

  /// - Parameter total: the length of the content.
  /// - Returns: nil for bytes that are no parts of it.
  init?(_ bytes: ArraySlice<UInt8>, total: Int) {
    guard bytes.count <= 64 * (Self.most + 1) else { return nil }
    for line in bytes.split(separator: 0x0a) {
      let words = String(decoding: line, as: UTF8.self).split(separator: " ")
      guard words.count == 3, let start = HTTPText.number(words[0]),
        let end = HTTPText.number(words[1]), let number = UInt64(words[2], radix: 16),
        start < end, end <= total
      else { return nil }
      add(ContentPart(range: start..<end, number: number))
    }
  }
}
