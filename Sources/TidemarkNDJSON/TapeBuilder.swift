internal import TidemarkEngine

/// Takes a JSON text apart into the nodes of a ``JSONTape``.
struct TapeBuilder: ~Escapable {
  private(set) var nodes: [JSONTape.Node] = []
  private var scanner: JSONScanner
  /// The innermost object or array that is open; -1 for none. While one is open, `next` of its
  /// node is the number of the one around it, plus one.
  private var parent = -1
  private var depth = 0
  private let mostNodes: Int
  private let mostDepth: Int
  private let mostMembers: Int

  @_lifetime(copy text)
  init(_ text: RawSpan, mostNodes: Int, mostDepth: Int, mostMembers: Int) {
    scanner = JSONScanner(text)
    self.mostNodes = mostNodes
    self.mostDepth = mostDepth
    self.mostMembers = mostMembers
    nodes.reserveCapacity(min(text.byteCount / 8 + 4, 64))
  }

  /// Takes the whole text up.
  /// - Parameter values: how many values it has, one behind the other.
  mutating func build(values: Int = 1) throws(JSONError) {
    for _ in 0..<values { try buildValue() }
    try scanner.expectEnd()
  }

  private mutating func buildValue() throws(JSONError) {
    repeat {
      try beginValue()
      while parent >= 0 {
        let node = nodes[parent]
        if node.count == 0 {
          if scanner.peek() != Self.closing(node.kind) {
            try beginMember(of: node.kind)
            break
          }
        } else if scanner.peek() == UInt8(ascii: ",") {
          scanner.offset += 1
          try beginMember(of: node.kind)
          break
        }
        try endContainer(node)
      }
    } while parent >= 0
  }

  private static func closing(_ kind: JSONTape.Kind) -> UInt8 {
    kind == .object ? UInt8(ascii: "}") : UInt8(ascii: "]")
  }

  /// Takes up a value; of an object or array its opening only.
  private mutating func beginValue() throws(JSONError) {
    let first = scanner.peek()
    let start = scanner.offset
    guard nodes.count < mostNodes else { throw JSONError(.tooDeep, at: start) }
    switch first {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      guard depth < mostDepth else { throw JSONError(.deeper(than: mostDepth), at: start) }
      scanner.offset += 1
      let kind: JSONTape.Kind = first == UInt8(ascii: "{") ? .object : .array
      let next = UInt32(parent + 1)
      depth += 1
      parent = nodes.count
      nodes.append(JSONTape.Node(kind: kind, start: UInt32(start), next: next))
    case UInt8(ascii: "\""): try takeString()
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      try scanner.skipNumber()
      append(.number, start)
    default:
      try scanner.skipValue(depth: depth)
      append(
        first == UInt8(ascii: "t") ? .yes : first == UInt8(ascii: "f") ? .no : .null, start)
    }
  }

  @inline(__always)
  private mutating func append(_ kind: JSONTape.Kind, _ start: Int, isPlain: Bool = true) {
    nodes.append(
      JSONTape.Node(
        kind: kind, isPlain: isPlain, start: UInt32(start), end: UInt32(scanner.offset),
        next: UInt32(nodes.count + 1)))
  }

  @inline(__always)
  private mutating func takeString() throws(JSONError) {
    let start = scanner.offset
    let isPlain = try scanner.skipString()
    append(.string, start, isPlain: isPlain)
  }

  /// Counts a member, and takes up its name.
  private mutating func beginMember(of kind: JSONTape.Kind) throws(JSONError) {
    nodes[parent].count += 1
    guard kind == .object else { return }
    guard nodes[parent].count <= mostMembers else {
      throw JSONError(.tooManyFields(most: mostMembers), at: scanner.offset)
    }
    guard scanner.peek() == UInt8(ascii: "\"") else { throw scanner.error(.nameExpected) }
    try takeString()
    guard scanner.peek() == UInt8(ascii: ":") else { throw scanner.error(.colonExpected) }
    scanner.offset += 1
  }

  private mutating func endContainer(_ node: JSONTape.Node) throws(JSONError) {
    guard scanner.peek() == Self.closing(node.kind) else {
      throw scanner.error(
        node.kind == .object ? .commaOrBraceExpected : .commaOrBracketExpected)
    }
    scanner.offset += 1
    nodes[parent].end = UInt32(scanner.offset)
    nodes[parent].next = UInt32(nodes.count)
    parent = Int(node.next) - 1
    depth -= 1
  }
}
