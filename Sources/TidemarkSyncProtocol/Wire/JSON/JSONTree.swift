internal import Tidemark
package import TidemarkEngine
internal import TidemarkNDJSON

/// A JSON text as a tree of values, read strictly after RFC 8259 and within bounds of depth and
/// members.
///
/// All strings are decoded into one piece of memory, which is no longer than the text.
package struct JSONTree {
  /// A value; strings are places in ``strings``.
  package enum Value {
    case null
    case bool(Bool)
    /// A whole number below 2^64 in size.
    case number(UInt64, isNegative: Bool)
    /// Any other number.
    case otherNumber
    case string(Range<Int>)
    case array([Value])
    case object([Member])
  }

  /// A field of an object.
  package struct Member {
    package var name: Range<Int>
    package var value: Value
  }

  let strings: [UInt8]
  package let root: Value

  /// Reads a text.
  package init(_ text: RawSpan) throws(FormatError) {
    var strings = [UInt8](repeating: 0, count: text.byteCount)
    do throws(JSONError) {
      root = try strings.withMutableRawSpan { (buffer) throws(JSONError) in
        var parser = JSONTreeParser(text)
        return try parser.text(&buffer)
      }
    } catch { throw FormatError("no JSON at byte \(error.offset): \(error.reason)") }
    self.strings = strings
  }

  /// A copy of a string's bytes.
  package func bytes(_ range: Range<Int>) -> [UInt8] {
    [UInt8](copying: strings.rawSpan.extracting(range))
  }

  /// Whether a string is this one.
  func holds(_ range: Range<Int>, _ text: StaticString) -> Bool {
    strings.rawSpan.extracting(range).holds(text)
  }
}

/// Builds the tree; recursion is bounded by ``WireLimits/depth``.
private struct JSONTreeParser: ~Escapable {
  private var scanner: JSONScanner
  /// Where the decoded strings end so far. They are never longer than what was read, so there is
  /// room in the buffer for the rest of the text.
  private var end = 0

  @_lifetime(copy text)
  init(_ text: RawSpan) { scanner = JSONScanner(text) }

  mutating func text(_ buffer: inout MutableRawSpan) throws(JSONError) -> JSONTree.Value {
    let value = try value(&buffer, depth: 0)
    try scanner.expectEnd()
    return value
  }

  private mutating func value(
    _ buffer: inout MutableRawSpan, depth: Int
  ) throws(JSONError) -> JSONTree.Value {
    switch scanner.peek() {
    case UInt8(ascii: "{"): return .object(try members(&buffer, depth: depth + 1))
    case UInt8(ascii: "["): return .array(try elements(&buffer, depth: depth + 1))
    case UInt8(ascii: "\""): return .string(try string(&buffer))
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    case let first:
      try scanner.skipValue(depth: depth)
      return first == UInt8(ascii: "n") ? .null : .bool(first == UInt8(ascii: "t"))
    }
  }

  private mutating func number() throws(JSONError) -> JSONTree.Value {
    let isNegative = scanner.peek() == UInt8(ascii: "-")
    let start = scanner.offset + (isNegative ? 1 : 0)
    guard try scanner.skipNumber(), let value = scanner.wholeNumber(from: start, atMost: .max)
    else { return .otherNumber }
    return .number(value, isNegative: isNegative)
  }

  private mutating func string(
    _ buffer: inout MutableRawSpan
  ) throws(JSONError) -> Range<Int> {
    let start = end
    end = try scanner.string(into: &buffer, at: start)
    return start..<end
  }

  private mutating func enter(_ depth: Int) throws(JSONError) {
    guard depth <= WireLimits.depth else {
      throw JSONError(.deeper(than: WireLimits.depth), at: scanner.offset)
    }
    scanner.offset += 1
  }

  private mutating func elements(
    _ buffer: inout MutableRawSpan, depth: Int
  ) throws(JSONError) -> [JSONTree.Value] {
    try enter(depth)
    var elements: [JSONTree.Value] = []
    if scanner.accept(UInt8(ascii: "]")) { return elements }
    repeat {
      elements.append(try value(&buffer, depth: depth))
    } while scanner.accept(UInt8(ascii: ","))
    try scanner.expect(UInt8(ascii: "]"), .commaOrBracketExpected)
    return elements
  }

  private mutating func members(
    _ buffer: inout MutableRawSpan, depth: Int
  ) throws(JSONError) -> [JSONTree.Member] {
    try enter(depth)
    var members: [JSONTree.Member] = []
    if scanner.accept(UInt8(ascii: "}")) { return members }
    repeat {
      guard scanner.peek() == UInt8(ascii: "\"") else { throw scanner.error(.nameExpected) }
      guard members.count < WireLimits.members else {
        throw JSONError(.tooManyFields(most: WireLimits.members), at: scanner.offset)
      }
      let name = try string(&buffer)
      try scanner.expect(UInt8(ascii: ":"), .colonExpected)
      members.append(JSONTree.Member(name: name, value: try value(&buffer, depth: depth)))
    } while scanner.accept(UInt8(ascii: ","))
    try scanner.expect(UInt8(ascii: "}"), .commaOrBraceExpected)
    return members
  }
}
