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

  /// Appends the value in one line.
  func append(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes.append(contentsOf: "null".utf8)
    case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
    case .integer(let value): bytes.append(contentsOf: String(value).utf8)
    case .unsigned(let value): bytes.append(contentsOf: String(value).utf8)
    case .string(let text): Self.append(text, to: &bytes)
    case .array(let values):
      bytes.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        value.append(to: &bytes)
      }
      bytes.append(UInt8(ascii: "]"))
    case .object(let members):
      bytes.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        Self.append(member.name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        member.value.append(to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  /// The value in one line.
  var text: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func append(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(byte)
      case UInt8(ascii: "\n"): bytes.append(contentsOf: "\\n".utf8)
      case UInt8(ascii: "\r"): bytes.append(contentsOf: "\\r".utf8)
      case UInt8(ascii: "\t"): bytes.append(contentsOf: "\\t".utf8)
      case 0..<0x20:
        bytes.append(contentsOf: (byte < 16 ? "\\u000" : "\\u00").utf8)
        bytes.append(contentsOf: String(byte, radix: 16).utf8)
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
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
    let digits = Array("0123456789abcdef".utf8)
    let characters = flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return String(decoding: characters, as: UTF8.self)
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
