internal import TidemarkEngine

/// Splits a text into words and folds them.
///
/// A word is a run of letters, marks and digits. Scripts that are written without spaces have a
/// word for each character: those of Chinese and Japanese, and of Thai, Lao, Khmer and Burmese;
/// so does each emoji. Such words are found together where they are written together.
enum WordSplitter {
  /// The number of these rules, which indexes that were made by others do not fit.
  static let version: UInt8 = 2
  /// Most bytes of a folded word: of a longer one there are so many, `FF`, which no text has, and a
  /// hash of the whole.
  static let wordBytes = 64

  struct Word {
    /// Folded.
    var bytes: [UInt8]
    /// Its place in the text.
    var range: Range<String.Index>
    /// Whether letters that follow may make a longer one of it.
    var isOpen: Bool
  }

  static func forEach(_ text: String, _ body: (Word) -> Void) {
    var start: String.Index?
    let scalars = text.unicodeScalars
    var index = scalars.startIndex
    func end(at end: String.Index) {
      guard let first = start else { return }
      start = nil
      let range = first..<end
      body(Word(bytes: folded(text[range]), range: range, isOpen: true))
    }
    while index < scalars.endIndex {
      let kind = kind(scalars[index])
      let next = scalars.index(after: index)
      switch kind {
      case .letter: if start == nil { start = index }
      case .mark, .unseen: break
      case .single:
        end(at: index)
        let behind =
          scalars[next...].firstIndex {
            let kind = Self.kind($0)
            return kind != .mark && kind != .unseen
          } ?? scalars.endIndex
        let range = index..<behind
        body(Word(bytes: folded(text[range]), range: range, isOpen: false))
        index = behind
        continue
      case .none: end(at: index)
      }
      index = next
    }
    end(at: text.endIndex)
  }

  private static func folded(_ text: Substring) -> [UInt8] {
    let bytes = FoldedText(text).bytes
    guard bytes.count > wordBytes else { return bytes }
    var writer = ByteWriter()
    writer.raw(Array(bytes.prefix(wordBytes)))
    writer.u8(0xFF)
    writer.u64(XXH64.hash(bytes.rawSpan))
    return writer.bytes
  }

  private static func kind(_ scalar: Unicode.Scalar) -> WordKind {
    let value = scalar.value
    if value < 0x80 {
      let isLetter = value | 0x20 >= 0x61 && value | 0x20 <= 0x7A
      return isLetter || value >= 0x30 && value <= 0x39 ? .letter : .none
    }
    return FoldingProperties(of: value).wordKind
  }
}
