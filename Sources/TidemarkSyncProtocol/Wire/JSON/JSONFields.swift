internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Reads the fields of a JSON message by name, one object at a time.
///
/// A duplicate field is an error, and so is an unknown one in a request. To find them, the fields
/// of each object are marked when they are read.
struct JSONFields {
  private let tape: JSONTape
  var isRequest = false
  /// The node of the object whose fields are read.
  private var object = 0
  /// A bit set of its members that were taken: objects have at most 64.
  private var taken: UInt64 = 0

  /// For a visitor that reads no JSON.
  init() { tape = JSONTape() }

  init(_ text: [UInt8]) throws(FormatError) {
    do throws(JSONError) {
      tape = try JSONTape(text, mostDepth: WireLimits.depth, mostMembers: WireLimits.members)
    } catch { throw FormatError("no JSON at byte \(error.offset): \(error.reason)") }
    _ = try enter(0)
  }

  // MARK: Objects

  /// An object, and which of its members were taken.
  typealias Place = (object: Int, taken: UInt64)

  /// Begins to read the fields of another object.
  /// - Returns: the object before, for `leave`.
  mutating func enter(_ node: Int) throws(FormatError) -> Place {
    guard tape.nodes[node].kind == .object else { throw FormatError("no JSON object") }
    defer { (object, taken) = (node, 0) }
    return (object, taken)
  }

  /// Ends the object; throws if it is of a request and has fields that were not taken.
  mutating func leave(to outer: Place) throws(FormatError) {
    if isRequest, taken.nonzeroBitCount < tape.nodes[object].count {
      for (index, member) in tape.members(of: object).enumerated() where taken >> index & 1 == 0 {
        let name = String(decoding: tape.characters(of: member).prefix(64), as: UTF8.self)
        throw FormatError("the field \(name) is not known here")
      }
    }
    (object, taken) = outer
  }

  /// Ends the message's object in the same way.
  mutating func finish() throws(FormatError) { try leave(to: (0, 0)) }

  // MARK: Members

  /// The value of a field; nil when it is absent. `null` counts as absent.
  mutating func take(
    _ name: StaticString, isBase64: Bool = false
  ) throws(FormatError) -> Int? {
    var found: Int?
    var bit: UInt64 = 0
    try members { (member, index) throws(FormatError) in
      guard isName(member, name, isBase64) else { return }
      guard bit == 0 else { throw FormatError("the field \(name) is given twice") }
      bit = 1 << index
      found = tape.nodes[member + 1].kind == .null ? nil : member + 1
    }
    taken |= bit
    return found
  }

  @inline(__always)
  private func members(
    _ body: (_ member: Int, _ index: UInt64) throws(FormatError) -> Void
  ) throws(FormatError) {
    let nodes = tape.nodes
    let end = Int(nodes[object].next)
    var member = object + 1
    var index: UInt64 = 0
    while member < end {
      try body(member, index)
      member = Int(nodes[member + 1].next)
      index += 1
    }
  }

  @inline(__always)
  private func isName(_ member: Int, _ name: StaticString, _ isBase64: Bool) -> Bool {
    let suffix: StaticString = "_base64"
    let node = tape.nodes[member]
    guard node.isPlain else {
      let text = name.description + (isBase64 ? suffix.description : "")
      return tape.characters(of: member).elementsEqual(text.utf8)
    }
    let (start, end) = (Int(node.start) + 1, Int(node.end) - 1)
    let middle = start + name.utf8CodeUnitCount
    guard end == middle + (isBase64 ? suffix.utf8CodeUnitCount : 0) else { return false }
    let text = tape.text.rawSpan
    return text.extracting(start..<middle).holds(name)
      && (!isBase64 || text.extracting(middle..<end).holds(suffix))
  }

  mutating func take(_ name: StaticString, isOptional: Bool) throws(FormatError) -> Int? {
    let value = try take(name)
    guard value != nil || isOptional else { throw FormatError("the field \(name) is missing") }
    return value
  }

  /// Whether the object has a field, as text or as base64; this takes it.
  mutating func has(_ name: StaticString) throws(FormatError) -> Bool {
    var (isThere, bits): (Bool, UInt64) = (false, 0)
    try members { (member, index) throws(FormatError) in
      guard isName(member, name, false) || isName(member, name, true) else { return }
      bits |= 1 << index
      isThere = isThere || tape.nodes[member + 1].kind != .null
    }
    taken |= bits
    return isThere
  }

  // MARK: Values

  func characters(_ value: Int, _ name: StaticString) throws(FormatError) -> [UInt8] {
    guard tape.nodes[value].kind == .string else { throw FormatError("\(name) is no string") }
    return tape.characters(of: value)
  }

  func elements(
    _ value: Int, _ name: StaticString, atMost limit: Int
  ) throws(FormatError) -> [Int] {
    let node = tape.nodes[value]
    guard node.kind == .array else { throw FormatError("\(name) is no array") }
    guard node.count <= limit else {
      throw FormatError("\(name) has \(node.count) elements; at most \(limit) are allowed")
    }
    return tape.elements(of: value)
  }

  func number(
    _ value: Int, _ name: StaticString, atMost limit: UInt64
  ) throws(FormatError) -> UInt64 {
    guard let number = tape.wholeNumber(value), !number.isNegative else {
      throw FormatError("\(name) is no whole number from 0 to \(UInt64.max)")
    }
    guard number.size <= limit else {
      throw FormatError("\(name) is \(number.size); at most \(limit) is allowed")
    }
    return number.size
  }

  mutating func flag(_ name: StaticString) throws(FormatError) -> Bool {
    guard let value = try take(name) else { return false }
    let kind = tape.nodes[value].kind
    guard kind == .yes || kind == .no else {
      throw FormatError("\(name) is neither true nor false")
    }
    return kind == .yes
  }

  /// A field of bytes: text, or base64 under the name with `_base64`.
  mutating func bytes(_ name: StaticString) throws(FormatError) -> [UInt8] {
    let text = try take(name)
    if let coded = try take(name, isBase64: true) {
      guard text == nil else { throw FormatError("both \(name) and \(name)_base64 are given") }
      return try content(coded, name, isBase64: true)
    }
    guard let text else { throw FormatError("the field \(name) is missing") }
    return try characters(text, name)
  }

  private func content(
    _ value: Int, _ name: StaticString, isBase64: Bool
  ) throws(FormatError) -> [UInt8] {
    let text = try characters(value, name)
    guard isBase64 else { return text }
    guard let bytes = Base64.decode(text.rawSpan) else {
      throw FormatError("\(name)_base64 has what is no base64")
    }
    return bytes
  }

  /// A field that is a list of byte strings: its texts, and those of the field with `_base64`.
  mutating func contents(
    _ name: StaticString, atMost count: Int
  ) throws(FormatError) -> [[UInt8]] {
    var list: [[UInt8]] = []
    for isBase64 in [false, true] {
      guard let value = try take(name, isBase64: isBase64) else { continue }
      for element in try elements(value, name, atMost: count) {
        list.append(try content(element, name, isBase64: isBase64))
      }
    }
    return list.sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// An entry's time: a text as in RFC 3339, or a pair of seconds and nanoseconds.
  mutating func time() throws(FormatError) -> Timestamp? {
    let text = try take("time").map { (node) throws(FormatError) in try characters(node, "time") }
    guard let pair = try take("time_unix") else {
      guard let text else { return nil }
      guard let time = Timestamp(rfc3339: text.rawSpan) else {
        throw FormatError("time is not RFC 3339")
      }
      return time
    }
    let numbers = try elements(pair, "time_unix", atMost: 2)
    guard text == nil, numbers.count == 2, let seconds = tape.wholeNumber(numbers[0]),
      let part = tape.wholeNumber(numbers[1]), !part.isNegative, part.size < 1_000_000_000,
      let whole = seconds.isNegative ? Self.negated(seconds.size) : Int64(exactly: seconds.size)
    else { throw FormatError("time_unix is not two whole numbers, the second below 1000000000") }
    return Timestamp(seconds: whole, nanoseconds: UInt32(part.size))
  }

  private static func negated(_ size: UInt64) -> Int64? {
    size <= 1 << 63 ? Int64(bitPattern: 0 &- size) : nil
  }
}
