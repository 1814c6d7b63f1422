internal import TidemarkEngine
internal import TidemarkNDJSON

/// A JSON text that was taken apart: its values in the order of the text, in one flat table.
///
/// The text is checked as RFC 8259 has it. Strings and numbers stay where they stand, and are
/// decoded when they are asked for.
struct JSONTape: Sendable {
  enum Kind: UInt8, Sendable { case null, yes, no, number, string, array, object }

  struct Node: Sendable {
    var kind: Kind
    /// The value's place in the text; a string's with its quotes.
    var start: UInt32
    var end: UInt32
    /// The node behind the value and all that is in it.
    var next: UInt32
    /// Elements of an array, members of an object.
    var count: UInt32 = 0
  }

  let text: [UInt8]
  /// The names of an object stand before their values, as strings.
  private(set) var nodes: [Node] = []

  /// Takes a text apart.
  init(_ text: [UInt8]) throws(JSONError) {
    self.text = text
    guard text.count < UInt32.max else { throw JSONError(.tooDeep, at: 0) }
    nodes.reserveCapacity(min(text.count / 8 + 4, 64))
    var scanner = JSONScanner(text.rawSpan)
    var open: [Int] = []
    while true {
      try scanner.beginValue(&nodes, &open)
      while let parent = open.last {
        if nodes[parent].count > 0, scanner.accept(UInt8(ascii: ",")) {
          try scanner.beginMember(of: parent, &nodes)
          break
        }
        if nodes[parent].count == 0, !scanner.isAtEnd(of: nodes[parent].kind) {
          try scanner.beginMember(of: parent, &nodes)
          break
        }
        try scanner.endContainer(parent, &nodes)
        open.removeLast()
      }
      if open.isEmpty { break }
    }
    try scanner.expectEnd()
  }

  subscript(_ index: Int) -> Node { nodes[index] }

  /// The text of a value.
  func bytes(of node: Node) -> ArraySlice<UInt8> { text[Int(node.start)..<Int(node.end)] }

  /// The characters of a string.
  func string(_ node: Node) -> String {
    let inside = text[Int(node.start) + 1..<Int(node.end) - 1]
    guard inside.contains(UInt8(ascii: "\\")) else {
      return String(decoding: inside, as: UTF8.self)
    }
    return String(decoding: Self.unescaped(bytes(of: node)), as: UTF8.self)
  }

  /// The UTF-8 bytes of a string that is known to be well-formed.
  /// - Parameter string: its text, with the quotes.
  static func unescaped(_ string: ArraySlice<UInt8>) -> [UInt8] {
    let text = Array(string)
    var buffer = text
    let end = try? buffer.withMutableRawSpan { (bytes) throws(JSONError) in
      var scanner = JSONScanner(text.rawSpan)
      return try scanner.string(into: &bytes, at: 0)
    }
    return Array(buffer[..<(end ?? 0)])
  }

  /// Whether a string says these UTF-8 bytes.
  func string(_ node: Node, isEqualTo name: String.UTF8View) -> Bool {
    let inside = text[Int(node.start) + 1..<Int(node.end) - 1]
    if inside.count == name.count, inside.elementsEqual(name) {
      return !name.contains(UInt8(ascii: "\\"))
    }
    guard inside.contains(UInt8(ascii: "\\")) else { return false }
    return Self.unescaped(bytes(of: node)).elementsEqual(name)
  }

  /// The members of an object: the nodes of their names, whose values are next to them.
  func members(of object: Int) -> [Int] {
    var members: [Int] = []
    members.reserveCapacity(Int(nodes[object].count))
    var index = object + 1
    while index < nodes[object].next {
      members.append(index)
      index = Int(nodes[index + 1].next)
    }
    return members
  }

  /// The path from the whole text to a value, as codings name it.
  func path(to target: Int) -> [JSONKey] {
    var path: [JSONKey] = []
    var index = 0
    while index < target, target < nodes[index].next {
      let isObject = nodes[index].kind == .object
      var child = index + 1
      var position = 0
      while child < nodes[index].next {
        let value = isObject ? child + 1 : child
        if target < nodes[value].next {
          path.append(isObject ? JSONKey(string(nodes[child])) : JSONKey(position))
          index = value
          break
        }
        child = Int(nodes[value].next)
        position += 1
      }
      if isObject, child == target { break }
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

extension JSONScanner {
  /// Takes up a value; of an object or array its opening only.
  fileprivate mutating func beginValue(
    _ nodes: inout [JSONTape.Node], _ open: inout [Int]
  ) throws(JSONError) {
    let first = peek()
    let start = offset
    var kind: JSONTape.Kind
    switch first {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      guard open.count < JSONScanner.maximumDepth else { throw JSONError(.tooDeep, at: offset) }
      offset += 1
      kind = first == UInt8(ascii: "{") ? .object : .array
      open.append(nodes.count)
    case UInt8(ascii: "\""):
      try skipString()
      kind = .string
    default:
      try skipValue(depth: open.count)
      kind =
        switch first {
        case UInt8(ascii: "t"): .yes
        case UInt8(ascii: "f"): .no
        case UInt8(ascii: "n"): .null
        default: .number
        }
    }
    nodes.append(
      JSONTape.Node(
        kind: kind, start: UInt32(start), end: UInt32(offset), next: UInt32(nodes.count + 1)))
  }

  /// Whether an object or array is empty, right behind its opening.
  fileprivate mutating func isAtEnd(of kind: JSONTape.Kind) -> Bool {
    peek() == (kind == .object ? UInt8(ascii: "}") : UInt8(ascii: "]"))
  }

  /// Counts a member, and takes up its name.
  fileprivate mutating func beginMember(
    of parent: Int, _ nodes: inout [JSONTape.Node]
  ) throws(JSONError) {
    nodes[parent].count += 1
    guard nodes[parent].kind == .object else { return }
    guard peek() == UInt8(ascii: "\"") else { throw error(.nameExpected) }
    let start = offset
    try skipString()
    nodes.append(
      JSONTape.Node(
        kind: .string, start: UInt32(start), end: UInt32(offset), next: UInt32(nodes.count + 1)))
    try expect(UInt8(ascii: ":"), .colonExpected)
  }

  fileprivate mutating func endContainer(
    _ index: Int, _ nodes: inout [JSONTape.Node]
  ) throws(JSONError) {
    if nodes[index].kind == .object {
      try expect(UInt8(ascii: "}"), .commaOrBraceExpected)
    } else {
      try expect(UInt8(ascii: "]"), .commaOrBracketExpected)
    }
    nodes[index].end = UInt32(offset)
    nodes[index].next = UInt32(nodes.count)
  }
}
