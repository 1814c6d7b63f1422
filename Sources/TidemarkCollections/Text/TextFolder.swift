internal import CTidemark

// SAFETY: the C functions take numbers, check them against their tables, and return numbers.

struct TextFolder {
  private var scalars: [UInt32] = []
  private var folded: [UInt32] = []

  mutating func fold(_ text: some StringProtocol) -> [UInt8] {
    // ASCII needs no tables.
    if text.utf8.allSatisfy({ $0 < 0x80 }) {
      return text.utf8.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }
    }
    for scalar in text.unicodeScalars { decompose(scalar.value) }
    Self.order(&scalars)
    for scalar in scalars { foldCase(scalar) }
    // Some marks become letters when they are folded, and others come to stand beside each other.
    Self.order(&folded)
    return Self.encode(folded)
  }

  private mutating func decompose(_ scalar: UInt32) {
    if FoldingProperties(of: scalar).wordKind == .unseen { return }
    if let syllable = Self.hangul(scalar) {
      scalars.append(contentsOf: syllable)
      return
    }
    let count = FoldingProperties(of: scalar).decompositionLength
    for position in 0..<max(1, count) {
      scalars.append(ctidemark_folding_decomposed(scalar, position))
    }
  }

  private mutating func foldCase(_ scalar: UInt32) {
    let count = FoldingProperties(of: scalar).foldedLength
    for position in 0..<max(1, count) { folded.append(ctidemark_folding_folded(scalar, position)) }
  }

  /// The jamo of a Hangul syllable, by the arithmetic of section 3.12 of the Unicode Standard.
  private static func hangul(_ scalar: UInt32) -> [UInt32]? {
    guard 0xAC00..<0xD7A4 ~= scalar else { return nil }
    let index = scalar - 0xAC00
    let (vowel, tail) = (0x1161 + index % 588 / 28, index % 28)
    let syllable = [0x1100 + index / 588, vowel]
    return tail == 0 ? syllable : syllable + [0x11A7 + tail]
  }

  /// Puts marks that follow each other in canonical order: by their class, equal ones as they
  /// stand.
  private static func order(_ scalars: inout [UInt32]) {
    var index = 0
    while index < scalars.count {
      let start = index
      var classes: [(mark: UInt8, place: Int)] = []
      while index < scalars.count {
        let mark = FoldingProperties(of: scalars[index]).combiningClass
        guard mark > 0 else { break }
        classes.append((mark, index))
        index += 1
      }
      if classes.count > 1 {
        let former = scalars[start..<index]
        classes.sort { $0 < $1 }
        for (offset, each) in classes.enumerated() { scalars[start + offset] = former[each.place] }
      }
      index += 1
    }
  }

  /// The scalars in UTF-8, but for marks after letters that are searched without them.
  private static func encode(_ scalars: [UInt32]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(scalars.count)
    var dropsMarks = false
    var last: UInt32?
    for value in scalars {
      let properties = FoldingProperties(of: value)
      if properties.isMark, dropsMarks { continue }
      dropsMarks = properties.isLetterWithoutMarks
      if let last, let voiced = voiced(last, value) {
        bytes.removeLast(kanaBytes)
        bytes.append(contentsOf: voiced.utf8)
      } else if let scalar = Unicode.Scalar(value) {
        bytes.append(contentsOf: scalar.utf8)
      }
      last = value
    }
    return bytes
  }

  private static let kanaBytes = 3

  /// The kana with a mark of voicing as one letter, so that the one without is not its beginning;
  /// nil for all others.
  private static func voiced(_ kana: UInt32, _ mark: UInt32) -> Unicode.Scalar? {
    guard mark == 0x3099 || mark == 0x309A else { return nil }
    // Voiced kana stand behind the plain ones, but for those of u and of wa.
    let found = [1, 2, 8, 0x4E].map { kana + $0 }.first { composed in
      FoldingProperties(of: composed).decompositionLength == 2
        && ctidemark_folding_decomposed(composed, 0) == kana
        && ctidemark_folding_decomposed(composed, 1) == mark
    }
    return found.flatMap(Unicode.Scalar.init)
  }
}

/// The tables' facts about a scalar.
struct FoldingProperties {
  private let bits: UInt32

  init(of scalar: UInt32) { bits = ctidemark_folding_properties(scalar) }

  var combiningClass: UInt8 { UInt8(truncatingIfNeeded: bits) }
  var isMark: Bool { bits & 0x100 != 0 }
  var isLetterWithoutMarks: Bool { bits & 0x200 != 0 }
  var decompositionLength: UInt32 { bits >> 12 & 15 }
  var foldedLength: UInt32 { bits >> 16 & 15 }
  var wordKind: WordKind { WordKind(rawValue: UInt8(truncatingIfNeeded: bits >> 20 & 7)) ?? .none }
}

/// The part that a scalar has in a word.
enum WordKind: UInt8 {
  case none, letter
  /// It belongs to what it stands on, and to nothing by itself.
  case mark
  /// A word of its own: an ideograph, or an emoji.
  case single
  /// Texts are equal without it: soft hyphens, joiners, what changes the direction.
  case unseen
}
