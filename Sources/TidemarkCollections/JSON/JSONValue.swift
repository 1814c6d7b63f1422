internal import TidemarkEngine
internal import TidemarkNDJSON

/// A JSON value of any shape: what an ``Upcast`` changes.
///
/// ```swift
/// object["title"] = object["name"]
/// object["done"] = .bool(false)
/// ```
public enum JSONValue: Sendable, Hashable {
  /// Nothing.
  case null
  /// True or false.
  case bool(Bool)
  /// A number by its digits, as JSON has them, so that none loses any.
  case number(String)
  /// A text.
  case string(String)
  /// Values in order.
  case array([JSONValue])
  /// Values by name.
  case object([String: JSONValue])

  /// A whole number.
  public static func integer(_ value: Int) -> JSONValue { .number("\(value)") }

  /// The value of a field of an object. Nil where there is no such field, and for what is no
  /// object; setting nil removes the field, and setting a field of something else does nothing.
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
  /// Encodes the value as what it is.
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
  /// A text.
  public init(stringLiteral value: String) { self = .string(value) }

  /// True or false.
  public init(booleanLiteral value: Bool) { self = .bool(value) }

  /// A whole number.
  public init(integerLiteral value: Int) { self = .integer(value) }

  /// A number.
  public init(floatLiteral value: Double) { self = .number("\(value)") }

  /// Nothing.
  public init(nilLiteral: ()) { self = .null }

  /// Values in order.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

  /// Values by name; of two with one name the last.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
  }
}
