internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// JSON to be printed; members keep their order.
indirect enum JSONValue {
  case null
  case bool(Bool)
  case integer(Int)
  case unsigned(UInt64)
  case string(String)
  case array([JSONValue])
  case object([Member])

  struct Member {
    var name: String
    var value: JSONValue

    init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// A text, or null.
  static func optional(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

  private func write(to json: inout JSONWriter) {
    switch self {
    case .null: json.word("null")
    case .bool(let value): json.word(value ? "true" : "false")
    case .integer(let value): json.number(Int64(value))
    case .unsigned(let value): json.number(value)
    case .string(let text): json.text(text)
    case .array(let values):
      json.beginArray()
      for value in values { value.write(to: &json) }
      json.endArray()
    case .object(let members):
      json.beginObject()
      for member in members {
        json.name(text: member.name)
        member.value.write(to: &json)
      }
      json.endObject()
    }
  }

  /// The value in one line.
  var bytes: [UInt8] {
    var json = JSONWriter()
    write(to: &json)
    return json.bytes
  }

  var text: String { String(decoding: bytes, as: UTF8.self) }
}

extension JSONValue.Member {
  /// Bytes as `name` when they are UTF-8, else as `name_base64`.
  static func bytes(_ name: String, _ bytes: [UInt8]) -> Self {
    if let text = String(validating: bytes, as: UTF8.self) { return Self(name, .string(text)) }
    return Self(name + "_base64", .string(bytes.base64))
  }

  /// A time after RFC 3339.
  static func time(_ name: String, _ time: Timestamp) -> Self {
    Self(name, .string(time.text))
  }
}

extension [UInt8] {
  /// In base64.
  var base64: String {
    var text: [UInt8] = []
    Base64.encode(rawSpan, into: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// In hexadecimal digits.
  var hexadecimal: String {
    String(decoding: hexDigits, as: UTF8.self)
  }
}

extension Timestamp {
  /// After RFC 3339.
  var text: String {
    var bytes: [UInt8] = []
    appendRFC3339(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}
