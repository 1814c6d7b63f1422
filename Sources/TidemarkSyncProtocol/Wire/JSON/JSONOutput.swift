internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Writes a JSON text, in one line and without white space.
struct JSONOutput {
  private(set) var bytes: [UInt8] = []
  private var needsComma = false

  init(capacity: Int) { bytes.reserveCapacity(capacity) }

  // MARK: Structure

  mutating func object(_ body: (inout JSONOutput) -> Void) {
    element()
    bytes.append(UInt8(ascii: "{"))
    needsComma = false
    body(&self)
    bytes.append(UInt8(ascii: "}"))
    needsComma = true
  }

  mutating func object(_ name: StaticString, _ body: (inout JSONOutput) -> Void) {
    self.name(name)
    object(body)
  }

  mutating func array<T>(
    _ name: StaticString, _ elements: [T], _ body: (inout JSONOutput, T) -> Void
  ) {
    self.name(name)
    bytes.append(UInt8(ascii: "["))
    for element in elements { body(&self, element) }
    bytes.append(UInt8(ascii: "]"))
    needsComma = true
  }

  /// An array of objects.
  mutating func objects<T>(
    _ name: StaticString, _ elements: [T], _ body: (inout JSONOutput, T) -> Void
  ) {
    array(name, elements) { output, element in output.object { body(&$0, element) } }
  }

  private mutating func element() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  private mutating func name(_ name: StaticString, suffix: StaticString = "") {
    element()
    bytes.append(UInt8(ascii: "\""))
    literal(name)
    literal(suffix)
    literal("\":")
    needsComma = false
  }

  private mutating func literal(_ text: StaticString) {
    bytes.append(contentsOf: text.description.utf8)
  }

  // MARK: Values

  mutating func number(_ name: StaticString, _ number: UInt64) {
    self.name(name)
    decimal(number)
    needsComma = true
  }

  mutating func number(_ name: StaticString, _ number: Int) {
    self.number(name, UInt64(max(number, 0)))
  }

  mutating func flag(_ name: StaticString) {
    self.name(name)
    literal("true")
    needsComma = true
  }

  /// Seconds and nanoseconds, of which the seconds may be negative.
  mutating func pair(_ name: StaticString, _ first: Int64, _ second: UInt32) {
    self.name(name)
    bytes.append(UInt8(ascii: "["))
    bytes.append(contentsOf: String(first).utf8)
    bytes.append(UInt8(ascii: ","))
    decimal(UInt64(second))
    bytes.append(UInt8(ascii: "]"))
    needsComma = true
  }

  /// A string whose characters `body` appends, with their escapes.
  mutating func plain(_ name: StaticString, _ body: (inout [UInt8]) -> Void) {
    self.name(name)
    bytes.append(UInt8(ascii: "\""))
    body(&bytes)
    bytes.append(UInt8(ascii: "\""))
    needsComma = true
  }

  mutating func word(_ name: StaticString, _ words: UInt64...) {
    plain(name) { for word in words { WireText.append(word: word, to: &$0) } }
  }

  mutating func position(_ name: StaticString, _ position: Position) {
    plain(name) {
      WireText.append(word: position.epoch, to: &$0)
      $0.append(UInt8(ascii: "-"))
      $0.append(contentsOf: String(position.offset).utf8)
    }
  }

  mutating func replica(_ name: StaticString, _ replica: ReplicaID) {
    plain(name) { $0.append(contentsOf: replica.description.utf8) }
  }

  mutating func text(_ name: StaticString, _ text: String) {
    let content = Array(text.utf8)
    plain(name) { bytes in
      guard let count = JSONText.escapedCount(content.rawSpan) else { return }
      JSONText.append(content.rawSpan, escapedCount: count, to: &bytes)
    }
  }

  /// Text, or under a name with `_base64` behind it base64, where it is no UTF-8 or shorter so.
  mutating func content(_ name: StaticString, _ content: [UInt8]) {
    let span = content.rawSpan
    if let count = JSONText.escapedCount(span),
      count <= max(Self.shortText, Base64.encodedCount(span.byteCount))
    {
      self.name(name)
      bytes.append(UInt8(ascii: "\""))
      JSONText.append(span, escapedCount: count, to: &bytes)
    } else {
      self.name(name, suffix: "_base64")
      bytes.append(UInt8(ascii: "\""))
      Base64.encode(span, into: &bytes)
    }
    bytes.append(UInt8(ascii: "\""))
    needsComma = true
  }

  /// A list of texts, and under a name with `_base64` behind it those that are no UTF-8.
  mutating func contents(_ name: StaticString, _ contents: [[UInt8]]) {
    for isText in [true, false] {
      var count = 0
      for content in contents {
        let escaped = JSONText.escapedCount(content.rawSpan)
        guard (escaped != nil) == isText else { continue }
        if count == 0 {
          self.name(name, suffix: isText ? "" : "_base64")
          bytes.append(UInt8(ascii: "["))
        } else {
          bytes.append(UInt8(ascii: ","))
        }
        count += 1
        bytes.append(UInt8(ascii: "\""))
        if let escaped {
          JSONText.append(content.rawSpan, escapedCount: escaped, to: &bytes)
        } else {
          Base64.encode(content.rawSpan, into: &bytes)
        }
        bytes.append(UInt8(ascii: "\""))
      }
      if count > 0 {
        bytes.append(UInt8(ascii: "]"))
        needsComma = true
      }
    }
  }

  /// A list of bytes as hexadecimal digits.
  mutating func hexadecimals(_ name: StaticString, _ contents: [[UInt8]]) {
    array(name, contents) { output, content in
      output.element()
      output.bytes.append(UInt8(ascii: "\""))
      output.bytes.append(contentsOf: Hex.text(content).utf8)
      output.bytes.append(UInt8(ascii: "\""))
    }
  }

  private mutating func decimal(_ number: UInt64) {
    bytes.append(contentsOf: String(number).utf8)
  }

  /// Texts of so many bytes are never base64 because of their length.
  private static let shortText = 256
}
