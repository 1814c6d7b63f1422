/// The parts of one content that are stored without the rest (RFC 9111, 3.3), by their beginnings.
enum ContentParts {
  /// Most parts of one content; then neighbours become one, or the shortest goes.
  static let most = 32

  /// The next step where there are too many: two neighbours without a gap that are the shortest
  /// together, or the shortest of all.
  static func surplus(_ parts: [Range<Int>]) -> [Range<Int>] {
    guard parts.count > most else { return [] }
    let pairs = zip(parts, parts.dropFirst()).filter { $1.lowerBound <= $0.upperBound }
    let pair = pairs.min { $0.0.count + $0.1.count < $1.0.count + $1.1.count }
    if let pair { return [pair.0, pair.1] }
    return parts.min { $0.count < $1.count }.map { [$0] } ?? []
  }
}

extension Sequence<Range<Int>> {
  /// The end of what ranges, by their beginnings, have without a gap from a byte on.
  func end(from start: Int) -> Int {
    reduce(start) { $1.lowerBound <= $0 ? Swift.max($0, $1.upperBound) : $0 }
  }
}
