/// Blanks out what is no code: comments and the text of string literals.
///
/// Code inside interpolations stays. Line breaks stay too, so that line numbers hold.
struct SwiftScanner {
  private enum Context: Equatable {
    case code
    /// Code within `\( … )`, with the open parentheses so far.
    case interpolation(depth: Int)
    case string(quotes: Int, hashes: Int)
  }

  private let source: [UInt8]
  private var output: [UInt8] = []
  private var position = 0
  private var stack: [Context] = [.code]

  private init(_ text: String) { source = Array(text.utf8) }

  /// The code of a source text.
  static func code(of text: String) -> String {
    var scanner = SwiftScanner(text)
    while scanner.position < scanner.source.count { scanner.step() }
    return String(decoding: scanner.output, as: UTF8.self)
  }

  private func at(_ first: Unicode.Scalar, _ second: Unicode.Scalar? = nil) -> Bool {
    guard source[position] == UInt8(ascii: first) else { return false }
    guard let second else { return true }
    return position + 1 < source.count && source[position + 1] == UInt8(ascii: second)
  }

  private func at(_ bytes: [UInt8]) -> Bool {
    source[position...].starts(with: bytes)
  }

  private mutating func keep(_ count: Int = 1) {
    output += source[position..<min(source.count, position + count)]
    position += count
  }

  private mutating func blank(_ count: Int = 1) {
    for byte in source[position..<min(source.count, position + count)] {
      output.append(byte == UInt8(ascii: "\n") ? byte : UInt8(ascii: " "))
    }
    position += count
  }

  private mutating func step() {
    if case .string(let quotes, let hashes) = stack[stack.count - 1] {
      stepInString(quotes, hashes)
    } else {
      stepInCode()
    }
  }

  private mutating func stepInCode() {
    if at("/", "/") {
      while position < source.count, source[position] != UInt8(ascii: "\n") { blank() }
    } else if at("/", "*") {
      skipBlockComment()
    } else if let opening = stringOpening() {
      keep(opening.hashes + opening.quotes)
      stack.append(.string(quotes: opening.quotes, hashes: opening.hashes))
    } else {
      countParentheses()
      keep()
    }
  }

  private mutating func skipBlockComment() {
    var depth = 0
    repeat {
      if at("/", "*") {
        depth += 1
        blank(2)
      } else if at("*", "/") {
        depth -= 1
        blank(2)
      } else {
        blank()
      }
    } while depth > 0 && position < source.count
  }

  private func stringOpening() -> (quotes: Int, hashes: Int)? {
    var end = position
    while end < source.count, source[end] == UInt8(ascii: "#") { end += 1 }
    let quote = UInt8(ascii: "\"")
    guard end < source.count, source[end] == quote else { return nil }
    let isLong = source[end...].starts(with: [quote, quote, quote])
    return (isLong ? 3 : 1, end - position)
  }

  private mutating func countParentheses() {
    guard case .interpolation(let depth) = stack[stack.count - 1] else { return }
    if at("(") {
      stack[stack.count - 1] = .interpolation(depth: depth + 1)
    } else if at(")") {
      stack.removeLast()
      if depth > 1 { stack.append(.interpolation(depth: depth - 1)) }
    }
  }

  private mutating func stepInString(_ quotes: Int, _ hashes: Int) {
    let hash = [UInt8](repeating: UInt8(ascii: "#"), count: hashes)
    let escape = [UInt8(ascii: "\\")] + hash
    if at(escape + [UInt8(ascii: "(")]) {
      blank(escape.count)
      keep()
      stack.append(.interpolation(depth: 1))
    } else if at(escape) {
      blank(escape.count + 1)
    } else if at([UInt8](repeating: UInt8(ascii: "\""), count: quotes) + hash) {
      keep(quotes + hashes)
      stack.removeLast()
    } else {
      blank()
    }
  }
}
