internal import TidemarkEngine
internal import TidemarkNDJSON

/// Makes a JSON text of a value: the names of every object in the order of their bytes, without
/// white space, so that equal values are equal bytes.
final class JSONEncoding {
  /// A value that was written.
  enum Value {
    /// A finished text, in `text`.
    case text(Range<Int>)
    case object(Fields)
    case array(Elements)
  }

  struct FieldList {
    var names: [String] = []
    var values: [Value] = []
  }

  typealias Fields = SingleOwner<FieldList>
  typealias Elements = SingleOwner<[Value]>

  /// The texts of strings, numbers and words, one behind the other.
  private let texts = SingleOwner<[UInt8]>([])
  /// The coding path of the first container that nests deeper than a reader accepts.
  private let exceeded = SingleOwner<JSONPath?>(nil)

  /// The text of a value.
  /// - Throws: `EncodingError`, and what the value's own coding throws.
  static func encode(_ value: some Encodable) throws -> [UInt8] {
    let encoding = JSONEncoding()
    encoding.texts.value.reserveCapacity(256)
    let result = try encoding.value(of: value, depth: 0, .root)
    if let path = encoding.exceeded.value { throw tooDeep(value, path) }
    var text: [UInt8] = []
    text.reserveCapacity(encoding.texts.value.count * 2)
    encoding.write(result, to: &text)
    return text
  }

  private func write(_ value: Value, to output: inout [UInt8]) {
    switch value {
    case .text(let range): output.append(contentsOf: texts.value[range])
    case .array(let elements):
      output.append(UInt8(ascii: "["))
      for (index, element) in elements.value.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        write(element, to: &output)
      }
      output.append(UInt8(ascii: "]"))
    case .object(let fields):
      output.append(UInt8(ascii: "{"))
      var last: Int?
      for index in fields.value.ordered {
        // A name that was written twice has the value that came last.
        if let last, fields.value.names[last] == fields.value.names[index] { continue }
        if last != nil { output.append(UInt8(ascii: ",")) }
        JSONEncoding.append(fields.value.names[index], to: &output)
        output.append(UInt8(ascii: ":"))
        write(fields.value.values[index], to: &output)
        last = index
      }
      output.append(UInt8(ascii: "}"))
    }
  }

  // MARK: Values

  func value<Encoded: Encodable>(
    of value: Encoded, depth: Int, _ path: @autoclosure () -> JSONPath
  ) throws -> Value {
    // Types are compared first, since a cast that fails takes long.
    if Encoded.self == String.self, let value = value as? String { return string(value) }
    if Encoded.self == Int.self, let value = value as? Int { return integer(value) }
    if Encoded.self == Double.self, let value = value as? Double {
      return try double(value, path())
    }
    if Encoded.self == Bool.self, let value = value as? Bool { return bool(value) }
    if Encoded.self == [String].self, let value = value as? [String] { return strings(value) }
    // A value on the deepest level may still be a text or a number.
    guard depth <= JSONScanner.maximumDepth else { throw Self.tooDeep(value, path()) }
    let encoder = ValueEncoder(self, depth: depth, path: path())
    try value.encode(to: encoder)
    // A value that wrote nothing is an empty object.
    return try foreign(
      ForeignType(Encoded.self), encoder.value ?? .object(Fields(.init())), path())
  }

  /// Notes that a container was opened, which may not throw.
  func open(depth: Int, _ path: JSONPath) {
    if depth >= JSONScanner.maximumDepth { exceeded.value = path }
  }

  private static func tooDeep(_ value: Any, _ path: JSONPath) -> EncodingError {
    path.invalid(value, "nested deeper than \(JSONScanner.maximumDepth) levels")
  }

  /// A value in the form of ``ForeignType``, where it has one.
  private func foreign(
    _ type: ForeignType, _ value: Value, _ path: @autoclosure () -> JSONPath
  ) throws -> Value {
    switch (type, value) {
    case (.date, .text(let range)):
      guard let seconds = JSONNumbers.double(texts.value[range]),
        let date = ForeignType.text(ofDate: seconds)
      else { return value }
      return append { $0.append(contentsOf: date) }
    case (.data, .array(let elements)):
      var bytes: [UInt8] = []
      bytes.reserveCapacity(elements.value.count)
      for element in elements.value {
        guard case .text(let range) = element,
          let byte = JSONNumbers.integer(texts.value[range], UInt8.self)
        else { return value }
        bytes.append(byte)
      }
      return append { $0.append(contentsOf: ForeignType.text(ofData: bytes)) }
    case (.url, .object(let fields)):
      return fields.value.names == ["relative"] ? fields.value.values[0] : value
    case (.decimal, .object):
      var object: [UInt8] = []
      write(value, to: &object)
      guard let number = try DecimalNumber.text(ofFields: object) else {
        throw path().invalid(Double.nan, "JSON has no Decimal.nan")
      }
      return raw(number)
    case (.set, .array(let elements)): return sorted(elements.value, by: 1)
    case (.dictionary, .array(let elements)): return sorted(elements.value, by: 2)
    default: return value
    }
  }

  /// Writes an array whose groups of elements are sorted by their encoded bytes.
  private func sorted(_ elements: [Value], by size: Int) -> Value {
    let groups = stride(from: 0, to: elements.count, by: size).map { start in
      var text: [UInt8] = []
      for element in elements[start...].prefix(size) {
        if !text.isEmpty { text.append(UInt8(ascii: ",")) }
        write(element, to: &text)
      }
      return text
    }
    let ordered = groups.sorted { $0.lexicographicallyPrecedes($1) }
    return raw(
      [UInt8(ascii: "[")] + ordered.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")])
  }

  private func append(_ body: (inout [UInt8]) -> Void) -> Value {
    let start = texts.value.count
    body(&texts.value)
    return .text(start..<texts.value.count)
  }

  func string(_ value: String) -> Value { append { JSONEncoding.append(value, to: &$0) } }

  private func strings(_ values: [String]) -> Value {
    append { text in
      text.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { text.append(UInt8(ascii: ",")) }
        JSONEncoding.append(value, to: &text)
      }
      text.append(UInt8(ascii: "]"))
    }
  }

  private static func append(_ value: String, to text: inout [UInt8]) {
    text.append(UInt8(ascii: "\""))
    value.withBytes { bytes in
      let count = JSONText.escapedCount(bytes) ?? bytes.byteCount
      JSONText.append(bytes, escapedCount: count, to: &text)
    }
    text.append(UInt8(ascii: "\""))
  }

  func bool(_ value: Bool) -> Value {
    append { $0.append(contentsOf: (value ? "true" : "false").utf8) }
  }

  /// A text that is JSON already.
  func raw(_ json: [UInt8]) -> Value { append { $0.append(contentsOf: json) } }

  var null: Value { append { $0.append(contentsOf: "null".utf8) } }

  func integer(_ value: some FixedWidthInteger) -> Value {
    append { text in
      var digits = value.magnitude
      if value < 0 { text.append(UInt8(ascii: "-")) }
      let start = text.count
      repeat {
        let (quotient, digit) = digits.quotientAndRemainder(dividingBy: 10)
        text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit))
        digits = quotient
      } while digits > 0
      text[start...].reverse()
    }
  }

  func double(
    _ value: some BinaryFloatingPoint & CustomStringConvertible & Sendable,
    _ path: @autoclosure () -> JSONPath
  ) throws -> Value {
    var isNumber = true
    let result = append { isNumber = JSONNumbers.append(value, to: &$0) }
    guard isNumber else { throw path().invalid(value, "JSON has no \(value)") }
    return result
  }
}

extension JSONEncoding.FieldList {
  /// The fields by their names, those of one name last first.
  fileprivate var ordered: [Int] {
    let isOrdered = names.indices.dropFirst()
      .allSatisfy { Self.precedes(names[$0 - 1], names[$0]) }
    if isOrdered { return Array(names.indices) }
    return names.indices.sorted { a, b in
      names[a] == names[b] ? a > b : Self.precedes(names[a], names[b])
    }
  }

  private static func precedes(_ a: String, _ b: String) -> Bool {
    a.utf8.lexicographicallyPrecedes(b.utf8)
  }
}

/// The way to a value that is being written.
indirect enum JSONPath {
  case root
  case next(JSONPath, any CodingKey)

  var keys: [any CodingKey] {
    var keys: [any CodingKey] = []
    var step = self
    while case .next(let before, let key) = step {
      keys.append(key)
      step = before
    }
    return keys.reversed()
  }

  /// The error for a value that has no JSON.
  func invalid(_ value: Any, _ words: String) -> EncodingError {
    .invalidValue(value, EncodingError.Context(codingPath: keys, debugDescription: words))
  }
}
