internal import TidemarkEngine
internal import TidemarkNDJSON

/// A JSON value of any shape. An ``Upcast`` receives an object in this form and changes it.
///
/// ```swift
/// object["title"] = object["name"]
/// object["done"] = .bool(false)
/// ```
public enum JSONValue: Sendable, Hashable {
  /// The JSON value `null`.
  case null
  /// A JSON `true` or `false`.
  case bool(Bool)
  /// A JSON number as its digits, so that no precision is lost.
  case number(String)
  /// A JSON string.
  case string(String)
  /// A JSON array, with its elements in order.
  case array([JSONValue])
  /// A JSON object: its fields' values by name.
  case object([String: JSONValue])

  /// Makes a JSON number from a whole number.
  public static func integer(_ value: Int) -> JSONValue { .number("\(value)") }

  /// Reads or changes a field of a JSON object. Reading gives nil where there is no such field, or
  /// the value is no object. Setting nil removes the field; setting a field of a value that is no
  /// object does nothing.
  public subscript(name: String) -> JSONValue? {
    get {
      guard case .object(let fields) = self else { return nil }
      return fields[name]
    }
    set {
      guard case .object(var fields) = self else { return }
      self = .null
      fields[name] = newValue
      self = .object(fields)
    }
  }

  init(_ tape: JSONTape, at index: Int = 0) {
    let node = tape[index]
    switch node.kind {
    case .null: self = .null
    case .yes: self = .bool(true)
    case .no: self = .bool(false)
    case .number: self = .number(String(decoding: tape.bytes(of: node), as: UTF8.self))
    case .string: self = .string(tape.string(node))
    case .array: self = .array(tape.elements(of: index).map { JSONValue(tape, at: $0) })
    case .object:
      let fields = tape.members(of: index)
        .map { (tape.string(tape[$0]), JSONValue(tape, at: $0 + 1)) }
      self = .object(Dictionary(fields, uniquingKeysWith: { $1 }))
    }
  }
}

extension JSONValue: Encodable {
  /// Encodes the value as the JSON that it stands for.
  public func encode(to encoder: any Encoder) throws {
    switch self {
    case .object(let fields):
      var container = encoder.container(keyedBy: JSONKey.self)
      for (name, value) in fields { try container.encode(value, forKey: JSONKey(name)) }
    case .array(let elements): try elements.encode(to: encoder)
    case .null: try Bool?.none.encode(to: encoder)
    case .bool(let value): try value.encode(to: encoder)
    case .string(let value): try value.encode(to: encoder)
    case .number(let digits):
      if let writer = encoder as? ValueEncoder {
        try writer.encode(digits: digits)
      } else if let value = Int(digits) {
        try value.encode(to: encoder)
      } else {
        try Double(digits).encode(to: encoder)
      }
    }
  }
}

extension ValueEncoder {
  /// Writes a number by its digits.
  fileprivate func encode(digits: String) throws {
    let text = Array(digits.utf8)
    var scanner = JSONScanner(text.rawSpan)
    do {
      try scanner.skipNumber()
      try scanner.expectEnd()
    } catch {
      throw path.invalid(digits, "not a number")
    }
    value = encoding.raw(text)
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByNilLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Creates a JSON string from a string literal.
  public init(stringLiteral value: String) { self = .string(value) }

  /// Creates a JSON `true` or `false` from a literal.
  public init(booleanLiteral value: Bool) { self = .bool(value) }

  /// Creates a JSON number from an integer literal.
  public init(integerLiteral value: Int) { self = .integer(value) }

  /// Creates a JSON number from a floating-point literal.
  public init(floatLiteral value: Double) { self = .number("\(value)") }

  /// Creates the JSON value `null` from the literal `nil`.
  public init(nilLiteral: ()) { self = .null }

  /// Creates a JSON array from an array literal.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

  /// Creates a JSON object from a dictionary literal. When a name occurs twice, its last value
  /// counts.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
  }
}
