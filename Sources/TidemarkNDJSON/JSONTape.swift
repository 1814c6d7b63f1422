internal import TidemarkEngine

/// A JSON text that was taken apart: its values in the order of the text, in one flat table.
///
/// The text is checked as RFC 8259 has it. Strings and numbers stay where they stand, and are
/// decoded when they are asked for.
package struct JSONTape: Sendable {
  package enum Kind: UInt8, Sendable { case null, yes, no, number, string, array, object }

  package struct Node: Sendable {
    package var kind: Kind
    /// Whether the characters of a string stand in the text as they are, without escapes.
    package var isPlain = true
    /// The value's place in the text; a string's with its quotes.
    package var start: UInt32
    package var end: UInt32 = 0
    /// The node behind the value and all that is in it.
    package var next: UInt32
    /// Elements of an array, members of an object.
    package var count: UInt32 = 0

    package var isContainer: Bool { kind == .object || kind == .array }
  }

  package let text: [UInt8]
  /// The names of an object stand before their values, as strings.
  package let nodes: [Node]

  /// Takes a text apart.
  /// - Parameters:
  ///   - mostNodes: how many values and names it may have.
  ///   - mostDepth: how deep objects and arrays may be nested.
  ///   - mostMembers: how many members an object may have.
  ///   - defaults: an object whose values stand in for what the text lacks; empty for none.
  package init(
    _ text: [UInt8], mostNodes: Int = .max, mostDepth: Int = JSONScanner.maximumDepth,
    mostMembers: Int = .max, defaults: [UInt8] = []
  ) throws(JSONError) {
    let all = defaults.isEmpty ? text : text + [UInt8(ascii: " ")] + defaults
    guard all.count < UInt32.max else { throw JSONError(.tooDeep, at: 0) }
    var builder = TapeBuilder(
      all.rawSpan, mostNodes: mostNodes, mostDepth: mostDepth, mostMembers: mostMembers)
    try builder.build(values: defaults.isEmpty ? 1 : 2)
    // The text must not be two values by itself.
    guard defaults.isEmpty || builder.nodes[Int(builder.nodes[0].next)].start > text.count else {
      throw JSONError(.tooDeep, at: text.count)
    }
    nodes = builder.nodes
    self.text = all
  }

  /// The tape of no text.
  package init() { (text, nodes) = ([], []) }

  package subscript(_ index: Int) -> Node { nodes[index] }

  /// The text of a value.
  package func bytes(of node: Node) -> ArraySlice<UInt8> { text[Int(node.start)..<Int(node.end)] }

  /// The UTF-8 bytes of a string.
  package func characters(of index: Int) -> [UInt8] {
    let node = nodes[index]
    let (start, end) = (Int(node.start), Int(node.end))
    guard node.isPlain else { return Self.unescaped(text.rawSpan.extracting(start..<end)) }
    return Array(text[start + 1..<end - 1])
  }

  /// The UTF-8 bytes of a string that is known to be well-formed.
  /// - Parameter string: its text, with the quotes.
  package static func unescaped(_ string: ArraySlice<UInt8>) -> [UInt8] {
    let text = Array(string)
    return unescaped(text.rawSpan)
  }

  private static func unescaped(_ string: RawSpan) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: string.byteCount)
    let end = try? buffer.withMutableRawSpan { (bytes) throws(JSONError) in
      var scanner = JSONScanner(string)
      return try scanner.string(into: &bytes, at: 0)
    }
    buffer.removeLast(buffer.count - (end ?? 0))
    return buffer
  }

  /// The size of a whole number below 2^64; nil for any other value.
  package func wholeNumber(_ index: Int) -> (size: UInt64, isNegative: Bool)? {
    let node = nodes[index]
    guard node.kind == .number else { return nil }
    var scanner = JSONScanner(text.rawSpan, at: Int(node.start))
    let isNegative = scanner.peek() == UInt8(ascii: "-")
    let start = Int(node.start) + (isNegative ? 1 : 0)
    guard let isWhole = try? scanner.skipNumber(), isWhole,
      let size = scanner.wholeNumber(from: start, atMost: .max)
    else { return nil }
    return (size, isNegative)
  }

  /// The members of an object: the nodes of their names, whose values are next to them.
  package func members(of object: Int) -> [Int] { parts(of: object, valueAt: 1) }

  /// The nodes of an array's elements.
  package func elements(of array: Int) -> [Int] { parts(of: array, valueAt: 0) }

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
}
