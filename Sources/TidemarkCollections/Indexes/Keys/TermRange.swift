/// Terms from one on, up to another, in the order of bytes.
struct TermRange: Sendable, Hashable {
  var lower: [UInt8] = []
  /// Nil for no end.
  var upper: [UInt8]?

  /// All terms but those of nothing and of no number.
  static let something = TermRange(
    lower: end(of: IndexTerm.nothing.bytes) ?? [], upper: IndexTerm.noNumber.bytes)

  /// All terms that begin with some bytes.
  static func beginning(with bytes: [UInt8]) -> TermRange {
    TermRange(lower: bytes, upper: end(of: bytes))
  }

  /// The first bytes behind all that begin with some.
  static func end(of bytes: [UInt8]) -> [UInt8]? {
    var next = bytes
    while let last = next.popLast() {
      if last < 0xFF { return next + [last + 1] }
    }
    return nil
  }

  func contains(_ term: some Sequence<UInt8>) -> Bool {
    !term.lexicographicallyPrecedes(lower)
      && (upper.map { term.lexicographicallyPrecedes($0) } ?? true)
  }

  /// The complement of some ranges of index terms, as ranges.
  static func outside(_ ranges: [TermRange]) -> [TermRange] {
    var gaps: [TermRange] = []
    var lower: [UInt8] = []
    for range in ranges.sorted(by: { $0.lower.lexicographicallyPrecedes($1.lower) })
    where !range.isEmpty {
      if lower.lexicographicallyPrecedes(range.lower) {
        gaps.append(TermRange(lower: lower, upper: range.lower))
      }
      guard let upper = range.upper else { return gaps }
      if lower.lexicographicallyPrecedes(upper) { lower = upper }
    }
    return gaps + [TermRange(lower: lower)]
  }

  /// The same terms behind some bytes.
  func behind(_ bytes: [UInt8]) -> TermRange {
    TermRange(lower: bytes + lower, upper: upper.map { bytes + $0 } ?? Self.end(of: bytes))
  }

  func intersection(_ other: TermRange) -> TermRange {
    let lower = lower.lexicographicallyPrecedes(other.lower) ? other.lower : lower
    guard let upper, let others = other.upper else {
      return TermRange(lower: lower, upper: upper ?? other.upper)
    }
    return TermRange(lower: lower, upper: upper.lexicographicallyPrecedes(others) ? upper : others)
  }

  var isEmpty: Bool { upper.map { !lower.lexicographicallyPrecedes($0) } ?? false }

  /// The same terms where all bytes are turned.
  var inverted: TermRange {
    TermRange(
      lower: upper.flatMap { Self.end(of: $0.map { ~$0 }) } ?? [],
      upper: lower.isEmpty ? nil : Self.end(of: lower.map { ~$0 }))
  }

  /// Whether it is the range of one value: of all that begin with a whole term.
  var isOneTerm: Bool {
    upper == Self.end(of: lower)
      && IndexTerm.length(of: lower[...], isInverted: false) == lower.count
  }
}
