/// JSON for a terminal.
///
/// JSON lets characters through that a terminal takes as commands (DEL, C1) or that turn the
/// direction of what comes after them. As escapes they mean the same and do nothing.
enum TerminalJSON {
  /// The text with such characters as escapes; nil when there are none.
  /// - Parameter text: valid JSON; other than ASCII stands in its strings only.
  static func escaped(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    guard text.contains(where: { $0 >= 0x7f }) else { return nil }
    let decoded = String(decoding: text, as: UTF8.self)
    guard decoded.unicodeScalars.contains(where: isEscaped) else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(text.count + 64)
    for scalar in decoded.unicodeScalars {
      if isEscaped(scalar) {
        let digits = String(scalar.value, radix: 16)
        result.append(contentsOf: "\\u".utf8)
        result.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: 4 - digits.utf8.count))
        result.append(contentsOf: digits.utf8)
      } else {
        result.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      }
    }
    return result
  }

  /// Scalars below U+0020 are escaped in JSON anyway, or end its lines.
  private static func isEscaped(_ scalar: UnicodeScalar) -> Bool {
    scalar.value >= 0x7f && HumanText.isControl(scalar)
  }
}
