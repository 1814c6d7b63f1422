/// A word or a single other character of a source's code.
struct Token {
  var text: String
  /// Counted from 1.
  var line: Int
  /// How many braces are open around it.
  var depth: Int
  /// The character right before it, a space where there is none.
  var before: Character

  var isWord: Bool { text.first.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false }

  var isTypeName: Bool { text.first?.isUppercase ?? false }

  /// The tokens of code without comments and text.
  static func tokens(of code: String) -> [Token] {
    var result: [Token] = []
    var word: [UInt8] = []
    var line = 1
    var depth = 0
    var previous = UInt8(ascii: " ")
    var beforeWord = previous
    func character(_ byte: UInt8) -> Character { Character(Unicode.Scalar(byte)) }
    func endWord() {
      guard !word.isEmpty else { return }
      let text = String(decoding: word, as: UTF8.self)
      result.append(Token(text: text, line: line, depth: depth, before: character(beforeWord)))
      word = []
    }
    for byte in code.utf8 {
      let isWordByte =
        byte >= 0x80 || byte == UInt8(ascii: "_") || character(byte).isLetter
        || character(byte).isNumber
      if isWordByte {
        if word.isEmpty { beforeWord = previous }
        word.append(byte)
      } else {
        endWord()
        if byte == UInt8(ascii: "\n") {
          line += 1
        } else if byte != UInt8(ascii: " ") {
          if byte == UInt8(ascii: "}") { depth -= 1 }
          result.append(
            Token(
              text: String(character(byte)), line: line, depth: depth,
              before: character(previous)))
          if byte == UInt8(ascii: "{") { depth += 1 }
        }
      }
      previous = byte
    }
    endWord()
    return result
  }
}
