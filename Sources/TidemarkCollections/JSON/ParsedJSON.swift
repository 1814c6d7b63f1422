internal import TidemarkEngine
internal import TidemarkNDJSON

/// A JSON value that is compared by what it says, and still has the text that it was read from.
///
/// Reading is bounded in depth and in the number of values, since a value may come from anybody.
package struct ParsedJSON: Sendable {
  /// The members of an object, whose names are unique.
  package struct Object: Sendable {
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

  package private(set) var text: ArraySlice<UInt8>
  /// Nil for what is no object.
  package private(set) var object: Object?
  /// Nil for what is no array.
  private var elements: [ParsedJSON]?

  /// A value that is made of others.
  init(_ object: Object) {
    var text: [UInt8] = [UInt8(ascii: "{")]
    for (index, name) in object.names.enumerated() {
      guard let member = object.members[name] else { continue }
      if index > 0 { text.append(UInt8(ascii: ",")) }
      text += member.nameText
      text.append(UInt8(ascii: ":"))
      text += member.value.text
    }
    text.append(UInt8(ascii: "}"))
    self.text = text[...]
    self.object = object
  }

  /// - Returns: nil when the text is no JSON, has a name twice in an object, or goes beyond the
  ///   bounds.
  package init?(_ text: [UInt8]) {
    guard let tape = try? JSONTape(text, mostNodes: 2 * Self.mostValues) else { return nil }
    var left = Self.mostValues
    self.init(tape, 0, &left)
  }

  /// The value of a node; so deep as tapes are at most.
  private init?(_ tape: JSONTape, _ index: Int, _ left: inout Int) {
    guard left > 0 else { return nil }
    left -= 1
    let node = tape[index]
    text = tape.bytes(of: node)
    switch node.kind {
    case .array:
      var elements: [ParsedJSON] = []
      for child in tape.elements(of: index) {
        guard let element = ParsedJSON(tape, child, &left) else { return nil }
        elements.append(element)
      }
      self.elements = elements
    case .object:
      var object = Object()
      for number in tape.members(of: index) {
        let nameText = tape.bytes(of: tape[number])
        let name = JSONTape.unescaped(nameText)
        guard let value = ParsedJSON(tape, number + 1, &left) else { return nil }
        let member = Object.Member(nameText: nameText, value: value)
        guard object.members.updateValue(member, forKey: name) == nil else { return nil }
        object.names.append(name)
      }
      self.object = object
    case .null, .yes, .no, .number, .string: break
    }
  }
}

extension ParsedJSON: Equatable {
  /// Whether both say the same: names in any order, strings by their characters, numbers by their
  /// exact value.
  package static func == (a: ParsedJSON, b: ParsedJSON) -> Bool {
    if a.text == b.text { return true }
    if let a = a.object, let b = b.object {
      return a.names.count == b.names.count
        && a.members.allSatisfy { $0.value.value == b.members[$0.key]?.value }
    }
    if let a = a.elements, let b = b.elements { return a == b }
    let quote = UInt8(ascii: "\"")
    if a.text.first == quote, b.text.first == quote {
      return JSONTape.unescaped(a.text) == JSONTape.unescaped(b.text)
    }
    // Only numbers are left that may say the same in other words.
    guard let a = JSONDecimal(a.text), let b = JSONDecimal(b.text) else { return false }
    return a == b
  }
}

/// A number of JSON by its digits, of any length: two are equal if and only if their values are.
struct JSONDecimal: Equatable {
  private(set) var isNegative = false
  /// Without zeros in front or at the end; nothing for zero.
  private(set) var digits: [UInt8] = []
  /// The power of ten by which the digits are multiplied.
  private(set) var exponent = 0

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
