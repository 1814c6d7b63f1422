internal import TidemarkEngine
internal import TidemarkNDJSON

/// Decodes types from a JSON text, and takes note of the fields that nobody asked for.
final class JSONDecoding {
  let tape: JSONTape
  private let progress: SingleOwner<Progress>

  private struct Progress {
    /// The names that were asked for, by their nodes; empty where nobody wants to know.
    var asked: [Bool]
    /// Decoded values by their nodes, where names are noted. A type that wraps another one comes
    /// after it, and is what a program writes in this place.
    var values: [Int: any Encodable] = [:]
    /// Where the member behind the one that was found last begins, and in which object: types
    /// mostly ask for names in the same order.
    var object = -1
    var next = 0
  }

  var asked: [Bool] { progress.value.asked }

  /// - Parameter tracks: whether it takes note of the names that are asked for.
  init(_ tape: JSONTape, tracks: Bool = false) {
    self.tape = tape
    progress = SingleOwner(
      Progress(asked: tracks ? Array(repeating: false, count: tape.nodes.count) : []))
  }

  /// The value of an object's field, and takes note that it was asked for.
  func value(of name: String, in object: Int) -> Int? {
    name.withBytes { name in
      let first = object + 1
      let start = progress.value.object == object ? progress.value.next : first
      guard
        let index = tape.name(name, from: start, upTo: Int(tape[object].next))
          ?? tape.name(name, from: first, upTo: start)
      else { return nil }
      if !progress.value.asked.isEmpty { progress.value.asked[index] = true }
      goOn(behind: index + 1, in: object)
      return index + 1
    }
  }

  /// The default for a field that has to be there and is not: the first whose path is the field's,
  /// of names with dots between; a star is any name, or any element.
  func standIn(for name: String, in object: Int) -> Int? {
    let defaults = Int(tape[0].next)
    guard object < defaults, defaults < tape.nodes.count else { return nil }
    let path = tape.path(to: object).map(\.stringValue) + [name]
    let member = tape.members(of: defaults).first { member in
      let steps = tape.string(tape[member]).split(separator: ".", omittingEmptySubsequences: false)
      return steps.count == path.count && zip(steps, path).allSatisfy { $0 == "*" || $0 == $1 }
    }
    return member.map { $0 + 1 }
  }

  /// Looks for the next name behind a value, which may have been decoded with looks elsewhere.
  func goOn(behind value: Int, in object: Int) {
    // A default stands elsewhere.
    guard value < tape[object].next else { return }
    progress.value.object = object
    progress.value.next = Int(tape[value].next)
  }

  func noteAllAsked(in object: Int) {
    guard !progress.value.asked.isEmpty else { return }
    for name in tape.members(of: object) { progress.value.asked[name] = true }
  }

  // MARK: Values

  /// The value of a node, or of the whole text.
  func decode<Value: Decodable>(_ type: Value.Type, at index: Int = 0) throws -> Value {
    // The commonest types need no decoder of their own.
    if type == String.self, let value = try string(at: index) as? Value { return value }
    if type == Int.self, let value = try integer(Int.self, at: index) as? Value { return value }
    if type == Double.self, let value = try double(at: index) as? Value { return value }
    if type == Bool.self, let value = try bool(at: index) as? Value { return value }
    // Casts of each element would take longer than the elements.
    if type == [String].self, let value = try elements(of: index, string) as? Value {
      return value
    }
    if tape[index].kind == .array {
      if type == [Int].self,
        let value = try elements(of: index, { try integer(Int.self, at: $0) }) as? Value
      {
        return value
      }
      if type == [Double].self, let value = try elements(of: index, double) as? Value {
        return value
      }
    }
    var foreign = ForeignType.none
    if tape[index].kind == .string {
      foreign = ForeignType(type)
    } else if tape[index].kind == .number, ForeignType(type) == .decimal {
      return try decimal(type, at: index)
    }
    let value = try Value(from: ValueDecoder(state: self, index: index, foreign: foreign))
    if !progress.value.asked.isEmpty, let known = value as? any Encodable {
      progress.value.values[index] = known
    }
    return value
  }

  /// A `Decimal` of a number, from the object that it would write.
  private func decimal<Value: Decodable>(_ type: Value.Type, at index: Int) throws -> Value {
    guard let fields = DecimalNumber.fields(ofNumber: tape.bytes(of: tape[index])) else {
      throw DecodingError.dataCorrupted(context(index, "the number does not fit Decimal"))
    }
    return try JSONDecoding(JSONTape(fields)).decode(type)
  }

  /// The text that this program has for what it has decoded at a node.
  /// - Returns: nil where it has decoded an object or an array piece by piece.
  func known(at index: Int) -> [UInt8]? {
    if let value = progress.value.values[index] { return try? JSONEncoding.encode(value) }
    return tape[index].isContainer ? nil : Array(tape.bytes(of: tape[index]))
  }

  /// Whether the value at a node was decoded as a dictionary.
  func isDictionary(at index: Int) -> Bool { progress.value.values[index] is any DictionaryValue }

  func string(at index: Int) throws -> String {
    guard tape[index].kind == .string else { throw mismatch(String.self, index) }
    return tape.string(tape[index])
  }

  private func elements<Element>(
    of array: Int, _ element: (Int) throws -> Element
  ) throws -> [Element] {
    guard tape[array].kind == .array else { throw mismatch([Element].self, array) }
    var elements: [Element] = []
    elements.reserveCapacity(Int(tape[array].count))
    var index = array + 1
    let end = Int(tape[array].next)
    while index < end {
      elements.append(try element(index))
      index = Int(tape[index].next)
    }
    return elements
  }

  func bool(at index: Int) throws -> Bool {
    switch tape[index].kind {
    case .yes: true
    case .no: false
    default: throw mismatch(Bool.self, index)
    }
  }

  func integer<Number: FixedWidthInteger>(_ type: Number.Type, at index: Int) throws -> Number {
    guard tape[index].kind == .number else { throw mismatch(type, index) }
    guard let value = JSONNumbers.integer(tape.bytes(of: tape[index]), type) else {
      throw DecodingError.dataCorrupted(context(index, "the number does not fit \(type)"))
    }
    return value
  }

  func double(at index: Int) throws -> Double {
    guard tape[index].kind == .number else { throw mismatch(Double.self, index) }
    guard let value = JSONNumbers.double(tape.bytes(of: tape[index])) else {
      throw DecodingError.dataCorrupted(context(index, "the number does not fit Double"))
    }
    return value
  }

  // MARK: Errors

  func context(_ index: Int, _ words: String) -> DecodingError.Context {
    DecodingError.Context(codingPath: tape.path(to: index), debugDescription: words)
  }

  func mismatch(_ type: any Any.Type, _ index: Int) -> DecodingError {
    let context = context(index, "\(type) is expected, and there is \(tape[index].kind.words)")
    return tape[index].kind == .null
      ? .valueNotFound(type, context) : .typeMismatch(type, context)
  }
}

extension JSONTape.Kind {
  var words: String {
    switch self {
    case .null: "null"
    case .yes, .no: "a boolean"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
