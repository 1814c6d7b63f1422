/// Why a text was refused, and where.
///
/// Small and without allocation, since every scanning function may throw one; the words are made
/// only when somebody asks.
package struct JSONError: Error, Sendable, Hashable {
  /// The offset in the text, in bytes, from 0.
  package var offset: Int
  /// The fault that was found there.
  package var reason: Reason

  package init(_ reason: Reason, at offset: Int) {
    self.offset = offset
    self.reason = reason
  }

  /// The faults that a text can have.
  package enum Reason: Sendable, Hashable {
    case endsEarly
    case stringNotClosed
    case controlCharacter
    case unknownEscape
    case badUnicodeEscape
    case loneSurrogate
    case notUTF8
    case badNumber
    case badLiteral
    case valueExpected
    case objectExpected
    case nameExpected
    case colonExpected
    case commaOrBraceExpected
    case commaOrBracketExpected
    case trailingText
    case tooDeep
    /// The same where the bound is another one than that of a line.
    case deeper(than: Int)
    case tooManyFields(most: Int)
    /// Proper JSON, but not what a line of the format may say.
    case refused(LineProblem)
  }
}

extension JSONError.Reason: CustomStringConvertible {
  /// The fault, in words.
  package var description: String {
    switch self {
    case .endsEarly: "the line ends in the middle of the entry; it may have been cut off"
    case .stringNotClosed: "a string has no closing quote; the line may have been cut off"
    case .controlCharacter:
      "a control character stands in a string; write it as an escape such as \\n or \\u0000"
    case .unknownEscape: "unknown escape; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX"
    case .badUnicodeEscape: "\\u needs four hexadecimal digits"
    case .loneSurrogate: "half of a surrogate pair stands alone; write both halves, or base64"
    case .notUTF8: "not UTF-8; write bytes that are no text as base64"
    case .badNumber: "not a JSON number"
    case .badLiteral: "not a JSON value; words are true, false and null only"
    case .valueExpected: "a value is missing"
    case .objectExpected: "an entry is a JSON object and starts with {"
    case .nameExpected: "a field name in quotes is missing"
    case .colonExpected: "a colon is missing after the field name"
    case .commaOrBraceExpected: "a comma or } is missing after the value"
    case .commaOrBracketExpected: "a comma or ] is missing after the value"
    case .trailingText: "more text follows after the entry; each entry stands on its own line"
    case .tooDeep: "nested deeper than \(JSONScanner.maximumDepth) levels"
    case .deeper(let most): "nested deeper than \(most) levels"
    case .tooManyFields(let most): "an object has more than \(most) fields"
    case .refused(let problem): problem.description
    }
  }
}
