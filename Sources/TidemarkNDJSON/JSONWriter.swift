internal import TidemarkEngine

/// Writes a JSON text, in one line and without white space.
package struct JSONWriter: Sendable {
  /// The text so far.
  package var bytes: [UInt8] = []
  private var needsComma = false

  package init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

  // MARK: Structure

  package mutating func beginObject() { open(UInt8(ascii: "{")) }
  package mutating func endObject() { close(UInt8(ascii: "}")) }
  package mutating func beginArray() { open(UInt8(ascii: "[")) }
  package mutating func endArray() { close(UInt8(ascii: "]")) }

  /// Ends a line of several texts.
  package mutating func endLine() {
    bytes.append(UInt8(ascii: "\n"))
    needsComma = false
  }

  /// The name of a member, whose value comes next.
  package mutating func name(_ name: StaticString, isBase64: Bool = false) {
    element()
    bytes.append(UInt8(ascii: "\""))
    literal(name)
    literal(isBase64 ? "_base64\":" : "\":")
    needsComma = false
  }

  package mutating func name(text name: String) {
    text(name)
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  private mutating func element() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  private mutating func open(_ bracket: UInt8) {
    element()
    bytes.append(bracket)
    needsComma = false
  }

  private mutating func close(_ bracket: UInt8) {
    bytes.append(bracket)
    needsComma = true
  }

  private mutating func literal(_ text: StaticString) {
    bytes.append(contentsOf: text.description.utf8)
  }

  // MARK: Values

  /// One of the three words of JSON.
  package mutating func word(_ word: StaticString) {
    element()
    literal(word)
  }

  package mutating func number(_ number: UInt64) {
    element()
    bytes.append(contentsOf: String(number).utf8)
  }

  package mutating func number(_ number: Int64) {
    element()
    bytes.append(contentsOf: String(number).utf8)
  }

  /// A string whose characters `body` appends, none of which needs an escape.
  package mutating func plain(_ body: (inout [UInt8]) -> Void) {
    element()
    bytes.append(UInt8(ascii: "\""))
    body(&bytes)
    bytes.append(UInt8(ascii: "\""))
  }

  package mutating func text(_ text: String) {
    let content = Array(text.utf8)
    plain { bytes in
      guard let count = JSONText.escapedCount(content.rawSpan) else { return }
      JSONText.append(content.rawSpan, escapedCount: count, to: &bytes)
    }
  }

  /// A member with text, or under a name with `_base64` behind it base64, where it is no UTF-8 or
  /// shorter so.
  /// - Parameter shortText: texts of so many bytes are never base64 because of their length.
  package mutating func content(_ name: StaticString, _ content: RawSpan, shortText: Int) {
    if let count = JSONText.escapedCount(content),
      count <= max(shortText, Base64.encodedCount(content.byteCount))
    {
      self.name(name)
      element()
      bytes.append(UInt8(ascii: "\""))
      JSONText.append(content, escapedCount: count, to: &bytes)
    } else {
      self.name(name, isBase64: true)
      element()
      bytes.append(UInt8(ascii: "\""))
      Base64.encode(content, into: &bytes)
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// A member with a list of texts, and under a name with `_base64` behind it one of those that are
  /// no UTF-8; none where there is nothing.
  package mutating func contents(_ name: StaticString, _ contents: [[UInt8]]) {
    for isBase64 in [false, true] {
      var isOpen = false
      for content in contents {
        let count = JSONText.escapedCount(content.rawSpan)
        guard (count == nil) == isBase64 else { continue }
        if !isOpen {
          self.name(name, isBase64: isBase64)
          beginArray()
          isOpen = true
        }
        plain { bytes in
          if let count {
            JSONText.append(content.rawSpan, escapedCount: count, to: &bytes)
          } else {
            Base64.encode(content.rawSpan, into: &bytes)
          }
        }
      }
      if isOpen { endArray() }
    }
  }
}
