internal import TidemarkEngine

/// A pull scanner over one JSON text, after RFC 8259, strict: what it accepts is valid JSON.
///
/// The caller asks for what it expects next; nothing is built and nothing allocated. Each function
/// passes over leading white space.
package struct JSONScanner: ~Escapable {
  /// Deepest nesting of objects and arrays.
  package static var maximumDepth: Int { 64 }

  /// The text.
  package let bytes: RawSpan
  /// Where the next function begins to read.
  package var offset: Int

  @_lifetime(copy bytes)
  package init(_ bytes: RawSpan, at offset: Int = 0) {
    self.bytes = bytes
    self.offset = offset
  }

  /// The next byte that is not white space, which `offset` then stands at; 0 at the end.
  /// (A zero byte is nowhere valid outside a string, so the two need no telling apart.)
  @inline(__always)
  package mutating func peek() -> UInt8 {
    while offset < bytes.byteCount {
      let byte = bytes.byte(offset)
      if byte > 0x20 { return byte }
      guard byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 else { return byte }
      offset += 1
    }
    return 0
  }

  /// Passes over `byte`, or throws `reason`.
  @inline(__always)
  package mutating func expect(
    _ byte: UInt8, _ reason: JSONError.Reason
  ) throws(JSONError) {
    guard peek() == byte else { throw error(reason) }
    offset += 1
  }

  /// Passes over `byte` if it comes next.
  @inline(__always)
  package mutating func accept(_ byte: UInt8) -> Bool {
    guard peek() == byte else { return false }
    offset += 1
    return true
  }

  /// Makes sure that nothing but white space is left.
  @inline(__always)
  package mutating func expectEnd() throws(JSONError) {
    _ = peek()
    guard offset == bytes.byteCount else { throw JSONError(.trailingText, at: offset) }
  }

  /// The error to throw when what comes next is not what was expected.
  package func error(_ reason: JSONError.Reason) -> JSONError {
    JSONError(offset < bytes.byteCount ? reason : .endsEarly, at: offset)
  }
}

// MARK: - Passing over values

extension JSONScanner {
  /// Passes over one value of any kind, which is checked like any other.
  /// - Parameter depth: how many objects and arrays are open around it.
  package mutating func skipValue(depth: Int) throws(JSONError) {
    // One bit for each open level, 1 for an object, so that hostile nesting costs no stack.
    var objects: UInt64 = 0
    var level = depth
    repeat {
      if try openOrSkip(&objects, &level) { continue }
      var ended = level == depth
      while !ended {
        if accept(UInt8(ascii: ",")) {
          if objects & 1 == 1 { try skipName() }
          break
        }
        if objects & 1 == 1 {
          try expect(UInt8(ascii: "}"), .commaOrBraceExpected)
        } else {
          try expect(UInt8(ascii: "]"), .commaOrBracketExpected)
        }
        objects >>= 1
        level -= 1
        ended = level == depth
      }
      if ended { return }
    } while true
  }

  /// Opens an object or array that is not empty, or passes over any other value.
  /// - Returns: whether something was opened, so that a value must come next.
  private mutating func openOrSkip(
    _ objects: inout UInt64, _ level: inout Int
  ) throws(JSONError) -> Bool {
    switch peek() {
    case UInt8(ascii: "\""): try skipString()
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      let isObject = bytes.byte(offset) == UInt8(ascii: "{")
      guard level < JSONScanner.maximumDepth else { throw JSONError(.tooDeep, at: offset) }
      offset += 1
      if accept(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) { return false }
      objects = objects << 1 | (isObject ? 1 : 0)
      level += 1
      if isObject { try skipName() }
      return true
    case UInt8(ascii: "t"): try skipWord("true")
    case UInt8(ascii: "f"): try skipWord("false")
    case UInt8(ascii: "n"): try skipWord("null")
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try skipNumber()
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
      throw JSONError(.badLiteral, at: offset)
    default: throw error(.valueExpected)
    }
    return false
  }

  private mutating func skipName() throws(JSONError) {
    guard peek() == UInt8(ascii: "\"") else { throw error(.nameExpected) }
    try skipString()
    try expect(UInt8(ascii: ":"), .colonExpected)
  }

  private mutating func skipWord(_ word: StaticString) throws(JSONError) {
    let end = offset + word.utf8CodeUnitCount
    guard end <= bytes.byteCount, bytes.extracting(offset..<end).holds(word) else {
      throw JSONError(.badLiteral, at: offset)
    }
    offset = end
  }
}
