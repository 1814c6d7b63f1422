internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// The fields of one JSON object, taken by name.
///
/// A field that is given twice is an error; so is, in a request, one that nobody asked for.
struct JSONFields {
  let tree: JSONTree
  private let members: [JSONTree.Member]
  /// One bit for each member that was taken: objects have at most 64.
  private var taken: UInt64 = 0

  init(_ value: JSONTree.Value, in tree: JSONTree) throws(FormatError) {
    guard case .object(let members) = value else { throw FormatError("no JSON object") }
    self.tree = tree
    self.members = members
  }

  /// The value of a field; nil when it is absent. `null` counts as absent.
  mutating func take(_ name: StaticString) throws(FormatError) -> JSONTree.Value? {
    var found: JSONTree.Value?
    var isThere = false
    for index in members.indices where tree.holds(members[index].name, name) {
      guard !isThere else { throw FormatError("the field \(name) is given twice") }
      isThere = true
      taken |= 1 << UInt64(index)
      if case .null = members[index].value { continue }
      found = members[index].value
    }
    return found
  }

  /// Makes sure that a request has no more fields than those taken.
  func finish(isRequest: Bool) throws(FormatError) {
    guard isRequest, taken.nonzeroBitCount < members.count else { return }
    for (index, member) in members.enumerated() where taken >> UInt64(index) & 1 == 0 {
      let name = String(decoding: tree.bytes(member.name).prefix(64), as: UTF8.self)
      throw FormatError("the field \(name) is not known here")
    }
  }

  // MARK: Fields of a type

  mutating func bytes(_ name: StaticString) throws(FormatError) -> [UInt8]? {
    guard let value = try take(name) else { return nil }
    guard case .string(let range) = value else { throw FormatError("\(name) is no string") }
    return tree.bytes(range)
  }

  /// A field that is text, or under another name base64.
  mutating func bytes(
    _ name: StaticString, base64 other: StaticString
  ) throws(FormatError) -> [UInt8]? {
    let text = try bytes(name)
    guard let coded = try bytes(other) else { return text }
    guard text == nil else { throw FormatError("both \(name) and \(other) are given") }
    guard let bytes = Base64.decode(coded.rawSpan) else {
      throw FormatError("\(other) is no base64")
    }
    return bytes
  }

  mutating func text(_ name: StaticString) throws(FormatError) -> String? {
    try bytes(name).map { String(decoding: $0, as: UTF8.self) }
  }

  mutating func number(
    _ name: StaticString, atMost limit: UInt64 = .max
  ) throws(FormatError) -> UInt64? {
    guard let value = try take(name) else { return nil }
    guard case .number(let number, isNegative: false) = value else {
      throw FormatError("\(name) is no whole number from 0 to \(UInt64.max)")
    }
    guard number <= limit else {
      throw FormatError("\(name) is \(number); at most \(limit) is allowed")
    }
    return number
  }

  mutating func count(_ name: StaticString, atMost limit: Int) throws(FormatError) -> Int? {
    try number(name, atMost: UInt64(limit)).map { Int($0) }
  }

  mutating func u32(_ name: StaticString) throws(FormatError) -> UInt32? {
    try number(name, atMost: UInt64(UInt32.max)).map { UInt32($0) }
  }

  mutating func flag(_ name: StaticString) throws(FormatError) -> Bool {
    guard let value = try take(name) else { return false }
    guard case .bool(let flag) = value else {
      throw FormatError("\(name) is neither true nor false")
    }
    return flag
  }

  /// Sixteen hexadecimal digits.
  mutating func word(_ name: StaticString) throws(FormatError) -> UInt64? {
    guard let text = try bytes(name) else { return nil }
    guard let word = WireText.word(text[...]) else {
      throw FormatError("\(name) is not sixteen hexadecimal digits")
    }
    return word
  }

  mutating func replica(_ name: StaticString) throws(FormatError) -> ReplicaID? {
    guard let text = try text(name) else { return nil }
    guard let replica = ReplicaID(text) else { throw FormatError("\(name) is no replica") }
    return replica
  }

  mutating func position(_ name: StaticString) throws(FormatError) -> Position? {
    guard let text = try bytes(name) else { return nil }
    guard let position = WireText.position(text) else {
      throw FormatError("\(name) is no position")
    }
    return position
  }

  mutating func array(
    _ name: StaticString, atMost limit: Int
  ) throws(FormatError) -> [JSONTree.Value]? {
    guard let value = try take(name) else { return nil }
    guard case .array(let elements) = value else { throw FormatError("\(name) is no array") }
    guard elements.count <= limit else {
      throw FormatError("\(name) has \(elements.count) elements; at most \(limit) are allowed")
    }
    return elements
  }

  /// The object in a field, handed to `body` and then seen to be used up.
  mutating func object<T>(
    _ name: StaticString, isRequest: Bool,
    _ body: (inout JSONFields) throws(FormatError) -> T
  ) throws(FormatError) -> T? {
    guard let value = try take(name) else { return nil }
    return try JSONFields.read(value, in: tree, isRequest: isRequest, body)
  }

  /// The objects in a field that is an array of them.
  mutating func objects<T>(
    _ name: StaticString, atMost limit: Int, isRequest: Bool,
    _ body: (inout JSONFields) throws(FormatError) -> T
  ) throws(FormatError) -> [T]? {
    guard let elements = try array(name, atMost: limit) else { return nil }
    var result: [T] = []
    result.reserveCapacity(elements.count)
    for element in elements {
      result.append(try JSONFields.read(element, in: tree, isRequest: isRequest, body))
    }
    return result
  }

  static func read<T>(
    _ value: JSONTree.Value, in tree: JSONTree, isRequest: Bool,
    _ body: (inout JSONFields) throws(FormatError) -> T
  ) throws(FormatError) -> T {
    var fields = try JSONFields(value, in: tree)
    let result = try body(&fields)
    try fields.finish(isRequest: isRequest)
    return result
  }
}

/// The meaning of a field's absence where it must be there.
func required<T>(_ value: T?, _ name: StaticString) throws(FormatError) -> T {
  guard let value else { throw FormatError("the field \(name) is missing") }
  return value
}
