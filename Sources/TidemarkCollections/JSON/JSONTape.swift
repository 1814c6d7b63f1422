internal import TidemarkEngine
package import TidemarkNDJSON

/// A JSON text that was taken apart: its values in the order of the text, in one flat table.
///
/// The text is checked as RFC 8259 has it. Strings and numbers stay where they stand, and are
/// decoded when they are asked for.
package struct JSONTape: Sendable {
  package enum Kind: UInt8, Sendable { case null, yes, no, number, string, array, object }

  package struct Node: Sendable {
    package var kind: Kind
    /// Whether the characters of a string stand in the text as they are, without escapes.
    var isPlain = true
    /// The value's place in the text; a string's with its quotes.
    var start: UInt32
    var end: UInt32 = 0
    /// The node behind the value and all that is in it.
    package var next: UInt32
    /// Elements of an array, members of an object.
    var count: UInt32 = 0

    var isContainer: Bool { kind == .object || kind == .array }
  }

  let text: [UInt8]
  /// The names of an object stand before their values, as strings.
  let nodes: [Node]

  /// Takes a text apart.
  /// - Parameters:
  ///   - mostNodes: how many values and names it may have.
  ///   - defaults: an object whose values stand in for what the text lacks; empty for none.
  package init(
    _ text: [UInt8], mostNodes: Int = .max, defaults: [UInt8] = []
  ) throws(JSONError) {
    let all = defaults.isEmpty ? text : text + [UInt8(ascii: " ")] + defaults
    guard all.count < UInt32.max else { throw JSONError(.tooDeep, at: 0) }
    var builder = TapeBuilder(all.rawSpan, mostNodes: mostNodes)
    try builder.build(values: defaults.isEmpty ? 1 : 2)
    // The text must not be two values by itself.
    guard defaults.isEmpty || builder.nodes[Int(builder.nodes[0].next)].start > text.count else {
      throw JSONError(.tooDeep, at: text.count)
    }
    nodes = builder.nodes
    self.text = all
  }

  package subscript(_ index: Int) -> Node { nodes[index] }

  /// The text of a value.
  package func bytes(of node: Node) -> ArraySlice<UInt8> { text[Int(node.start)..<Int(node.end)] }

  /// The characters of a string.
  func string(_ node: Node) -> String {
    guard node.isPlain else {
      return String(decoding: Self.unescaped(bytes(of: node)), as: UTF8.self)
    }
    return text.string(Int(node.start) + 1..<Int(node.end) - 1)
  }

  /// The UTF-8 bytes of a string that is known to be well-formed.
  /// - Parameter string: its text, with the quotes.
  package static func unescaped(_ string: ArraySlice<UInt8>) -> [UInt8] {
    let text = Array(string)
    var buffer = text
    let end = try? buffer.withMutableRawSpan { (bytes) throws(JSONError) in
      var scanner = JSONScanner(text.rawSpan)
      return try scanner.string(into: &bytes, at: 0)
    }
    return Array(buffer[..<(end ?? 0)])
  }

  /// The first name of an object, from one of its names on, that says these UTF-8 bytes.
  /// - Parameters:
  ///   - first: the node of a name.
  ///   - end: the node behind the object, or of the name to stop at.
  /// - Returns: its node; nil where there is none.
  @inline(__always)
  func name(_ name: RawSpan, from first: Int, upTo end: Int) -> Int? {
    let nodes = nodes.span
    let text = text.rawSpan
    var index = first
    while index < end {
      let node = nodes[index]
      let start = Int(node.start) + 1
      if node.isPlain {
        if Int(node.end) - 1 - start == name.byteCount,
          text.extracting(start..<Int(node.end) - 1).isSame(as: name)
        {
          return index
        }
      } else if Self.unescaped(bytes(of: node)).rawSpan.isSame(as: name) {
        return index
      }
      index = Int(nodes[index + 1].next)
    }
    return nil
  }

  /// The members of an object: the nodes of their names, whose values are next to them.
  package func members(of object: Int) -> [Int] { parts(of: object, valueAt: 1) }

  /// The nodes of an array's elements.
  func elements(of array: Int) -> [Int] { parts(of: array, valueAt: 0) }

  /// - Parameter offset: how many nodes stand in a part before its value.
  private func parts(of container: Int, valueAt offset: Int) -> [Int] {
    var parts: [Int] = []
    parts.reserveCapacity(Int(nodes[container].count))
    var index = container + 1
    while index < nodes[container].next {
      parts.append(index)
      index = Int(nodes[index + offset].next)
    }
    return parts
  }

  /// The path from the whole text to a value, as codings name it.
  func path(to target: Int) -> [JSONKey] {
    var path: [JSONKey] = []
    var index = 0
    while index < target, target < nodes[index].next {
      let isObject = nodes[index].kind == .object
      index += isObject ? 2 : 1
      var position = 0
      while target >= nodes[index].next {
        index = Int(nodes[index].next) + (isObject ? 1 : 0)
        position += 1
      }
      path.append(isObject ? JSONKey(string(nodes[index - 1])) : JSONKey(position))
    }
    return path
  }
}

/// A step of a path in a JSON text: a name or a position.
struct JSONKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(_ name: String) {
    stringValue = name
    intValue = nil
  }

  init(_ position: Int) {
    stringValue = "\(position)"
    intValue = position
  }

  init?(stringValue: String) { self.init(stringValue) }

  init?(intValue: Int) { self.init(intValue) }
}
