internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// A JSON value that is compared by what it says, and still has the text that it was read from.
///
/// Reading is bounded in depth and in the number of values, since a value may come from anybody.
struct ParsedJSON: Sendable {
  enum Shape: Sendable {
    /// A string, a number, or one of the three words.
    case scalar
    case array([ParsedJSON])
    case object(Object)
  }

  /// The members of an object, whose names are unique.
  struct Object: Sendable {
    struct Member: Sendable {
      /// The name as it stands in the text, with its quotes.
      var nameText: ArraySlice<UInt8>
      var value: ParsedJSON
    }

    /// The decoded names, in the order of the text.
    var names: [[UInt8]] = []
    var members: [[UInt8]: Member] = [:]
  }

  /// Most values, at all depths together, of a text that is merged.
  static let mostValues = 1 << 18

  var shape: Shape
  var text: ArraySlice<UInt8>

  init(_ shape: Shape, text: ArraySlice<UInt8>) {
    self.shape = shape
    self.text = text
  }

  /// - Returns: nil when the text is no JSON, has a name twice in an object, or goes beyond the
  ///   bounds.
  init?(_ text: [UInt8]) {
    do {
      var parser = ParsedJSONParser(text.rawSpan, text)
      self = try parser.document()
    } catch { return nil }
  }

  var object: Object? {
    if case .object(let object) = shape { object } else { nil }
  }

  /// The bytes that a string's text stands for.
  static func decoded(_ string: ArraySlice<UInt8>) -> [UInt8]? {
    guard string.contains(UInt8(ascii: "\\")) else { return Array(string.dropFirst().dropLast()) }
    let text = Array(string)
    var buffer = text
    var end = 0
    do {
      end = try buffer.withMutableRawSpan { (bytes) throws(JSONError) in
        var scanner = JSONScanner(text.rawSpan)
        return try scanner.string(into: &bytes, at: 0)
      }
    } catch { return nil }
    return Array(buffer[..<end])
  }
}

extension ParsedJSON: Equatable {
  /// Whether both say the same: names in any order, strings by their characters, numbers by their
  /// exact value.
  static func == (a: ParsedJSON, b: ParsedJSON) -> Bool {
    if a.text == b.text { return true }
    switch (a.shape, b.shape) {
    case (.object(let a), .object(let b)):
      return a.names.count == b.names.count
        && a.members.allSatisfy { $0.value.value == b.members[$0.key]?.value }
    case (.array(let a), .array(let b)): return a == b
    case (.scalar, .scalar): return isSameScalar(a.text, b.text)
    default: return false
    }
  }

  private static func isSameScalar(_ a: ArraySlice<UInt8>, _ b: ArraySlice<UInt8>) -> Bool {
    let quote = UInt8(ascii: "\"")
    if a.first == quote, b.first == quote {
      guard let a = decoded(a), let b = decoded(b) else { return false }
      return a == b
    }
    guard let a = JSONDecimal(a), let b = JSONDecimal(b) else { return false }
    return a == b
  }
}

/// A number of JSON by its digits, of any length: two are equal if and only if their values are.
struct JSONDecimal: Equatable {
  private var isNegative = false
  /// Without zeros in front or at the end; nothing for zero.
  private var digits: [UInt8] = []
  /// The power of ten by which the digits are multiplied.
  private var exponent = 0

  /// - Parameter text: a number as the grammar has it, or a word.
  /// - Returns: nil for a word, and for an exponent that no computer counts with.
  init?(_ text: ArraySlice<UInt8>) {
    var rest = text
    if rest.first == UInt8(ascii: "-") {
      isNegative = true
      rest = rest.dropFirst()
    }
    var isFraction = false
    var places = 0
    while let byte = rest.popFirst(), byte | 0x20 != UInt8(ascii: "e") {
      if byte == UInt8(ascii: ".") {
        isFraction = true
        continue
      }
      guard byte &- UInt8(ascii: "0") < 10 else { return nil }
      if isFraction { places += 1 }
      if byte != UInt8(ascii: "0") || !digits.isEmpty { digits.append(byte) }
    }
    guard !digits.isEmpty else {
      isNegative = false
      return
    }
    if !rest.isEmpty {
      guard let written = Int32(String(decoding: rest, as: UTF8.self)) else { return nil }
      exponent = Int(written)
    }
    exponent -= places
    while digits.last == UInt8(ascii: "0") {
      digits.removeLast()
      exponent += 1
    }
  }
}

/// Reads a text; recursion is bounded by ``JSONScanner/maximumDepth``.
private struct ParsedJSONParser: ~Escapable {
  private var scanner: JSONScanner
  private let text: [UInt8]
  private var left = ParsedJSON.mostValues

  @_lifetime(copy span)
  init(_ span: RawSpan, _ text: [UInt8]) {
    scanner = JSONScanner(span)
    self.text = text
  }

  mutating func document() throws(JSONError) -> ParsedJSON {
    let value = try value(depth: 0)
    try scanner.expectEnd()
    return value
  }

  private mutating func value(depth: Int) throws(JSONError) -> ParsedJSON {
    let first = scanner.peek()
    let start = scanner.offset
    guard left > 0 else { throw JSONError(.tooDeep, at: start) }
    left -= 1
    let shape: ParsedJSON.Shape
    switch first {
    case UInt8(ascii: "{"): shape = .object(try members(depth: depth + 1))
    case UInt8(ascii: "["): shape = .array(try elements(depth: depth + 1))
    default:
      try scanner.skipValue(depth: depth)
      shape = .scalar
    }
    return ParsedJSON(shape, text: text[start..<scanner.offset])
  }

  private mutating func enter(_ depth: Int) throws(JSONError) {
    guard depth <= JSONScanner.maximumDepth else { throw JSONError(.tooDeep, at: scanner.offset) }
    scanner.offset += 1
  }

  private mutating func elements(depth: Int) throws(JSONError) -> [ParsedJSON] {
    try enter(depth)
    var elements: [ParsedJSON] = []
    if scanner.accept(UInt8(ascii: "]")) { return elements }
    repeat { elements.append(try value(depth: depth)) } while scanner.accept(UInt8(ascii: ","))
    try scanner.expect(UInt8(ascii: "]"), .commaOrBracketExpected)
    return elements
  }

  private mutating func members(depth: Int) throws(JSONError) -> ParsedJSON.Object {
    try enter(depth)
    var object = ParsedJSON.Object()
    if scanner.accept(UInt8(ascii: "}")) { return object }
    repeat {
      guard scanner.peek() == UInt8(ascii: "\"") else { throw scanner.error(.nameExpected) }
      let start = scanner.offset
      try scanner.skipString()
      let nameText = text[start..<scanner.offset]
      try scanner.expect(UInt8(ascii: ":"), .colonExpected)
      let member = ParsedJSON.Object.Member(nameText: nameText, value: try value(depth: depth))
      guard let name = ParsedJSON.decoded(nameText),
        object.members.updateValue(member, forKey: name) == nil
      else { throw JSONError(.nameExpected, at: start) }
      object.names.append(name)
    } while scanner.accept(UInt8(ascii: ","))
    try scanner.expect(UInt8(ascii: "}"), .commaOrBraceExpected)
    return object
  }
}
