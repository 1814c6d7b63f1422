internal import TidemarkEngine

/// Splits a text into words and folds them.
///
/// A word is a run of letters, marks and digits. Scripts that are written without spaces have a
/// word for each character: those of Chinese and Japanese, and of Thai, Lao, Khmer and Burmese, so
/// that parts of what is written together are found as phrases.
enum WordSplitter {
  /// Most bytes of a folded word; what is longer counts by its beginning.
  static let wordBytes = 64

  /// Calls `body` with each word, folded, and its place in the text.
  static func forEach(
    _ text: String, _ body: (_ word: [UInt8], _ range: Range<String.Index>) -> Void
  ) {
    var start: String.Index?
    var index = text.startIndex
    let scalars = text.unicodeScalars
    func end(at end: String.Index) {
      guard let first = start else { return }
      start = nil
      body(folded(text[first..<end]), first..<end)
    }
    while index < text.endIndex {
      let scalar = scalars[index]
      let next = scalars.index(after: index)
      switch kind(scalar) {
      case .letter: if start == nil { start = index }
      // A mark belongs to what it stands on, and to nothing by itself.
      case .mark: break
      case .ideograph:
        end(at: index)
        var behind = next
        while behind < text.endIndex, kind(scalars[behind]) == .mark {
          behind = scalars.index(after: behind)
        }
        body(folded(text[index..<behind]), index..<behind)
        index = behind
        continue
      case .other: end(at: index)
      }
      index = next
    }
    end(at: text.endIndex)
  }

  private static func folded(_ text: Substring) -> [UInt8] {
    let bytes = FoldedText(text).bytes
    guard bytes.count > wordBytes else { return bytes }
    // Not within a character.
    var end = wordBytes
    while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
    return Array(bytes[..<end])
  }

  private enum Kind { case letter, mark, ideograph, other }

  private static func kind(_ scalar: Unicode.Scalar) -> Kind {
    let value = scalar.value
    if value < 0x80 {
      let isLetter = value | 0x20 >= 0x61 && value | 0x20 <= 0x7A
      return isLetter || value >= 0x30 && value <= 0x39 ? .letter : .other
    }
    switch value {
    // Thai and Lao, Burmese, Khmer, kana, ideographs and those of the supplementary planes.
    case 0x0E01...0x0EFF, 0x1000...0x109F, 0x1780...0x17FF, 0x3040...0x30FF, 0x31F0...0x31FF,
      0x3400...0x4DBF, 0x4E00...0x9FFF, 0xF900...0xFAFF, 0x20000...0x3FFFF:
      return isMark(scalar) ? .mark : isWord(scalar) ? .ideograph : .other
    default: return isMark(scalar) ? .mark : isWord(scalar) ? .letter : .other
    }
  }

  private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .spacingMark, .enclosingMark: true
    default: false
    }
  }

  private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
      .decimalNumber, .letterNumber, .otherNumber:
      true
    default: false
    }
  }
}
