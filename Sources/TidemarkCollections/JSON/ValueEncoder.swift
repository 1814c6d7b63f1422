/// The place where a value writes itself.
final class ValueEncoder: Encoder {
  let encoding: JSONEncoding
  let depth: Int
  let path: JSONPath
  /// Nil until something was written.
  private(set) var value: JSONEncoding.Value?

  init(_ encoding: JSONEncoding, depth: Int, path: JSONPath) {
    self.encoding = encoding
    self.depth = depth
    self.path = path
  }

  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    encoding.open(depth: depth, path)
    let fields: JSONEncoding.Fields
    if case .object(let known) = value {
      fields = known
    } else {
      fields = JSONEncoding.Fields(JSONEncoding.FieldList())
    }
    value = .object(fields)
    return KeyedEncodingContainer(
      FieldEncoder<Key>(encoding: encoding, fields: fields, depth: depth + 1, path: path))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    encoding.open(depth: depth, path)
    let elements: JSONEncoding.Elements
    if case .array(let known) = value {
      elements = known
    } else {
      elements = JSONEncoding.Elements([])
    }
    value = .array(elements)
    return ElementEncoder(encoding: encoding, elements: elements, depth: depth + 1, path: path)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension ValueEncoder: SingleValueEncodingContainer {
  func set(_ value: JSONEncoding.Value) { self.value = value }

  func encodeNil() { value = encoding.null }
  func encode(_ value: Bool) { self.value = encoding.bool(value) }
  func encode(_ value: String) { self.value = encoding.string(value) }
  func encode(_ value: Double) throws { self.value = try encoding.double(value, path) }
  func encode(_ value: Float) throws { self.value = try encoding.double(value, path) }
  func encode(_ value: Int) { self.value = encoding.integer(value) }
  func encode(_ value: Int8) { self.value = encoding.integer(value) }
  func encode(_ value: Int16) { self.value = encoding.integer(value) }
  func encode(_ value: Int32) { self.value = encoding.integer(value) }
  func encode(_ value: Int64) { self.value = encoding.integer(value) }
  func encode(_ value: UInt) { self.value = encoding.integer(value) }
  func encode(_ value: UInt8) { self.value = encoding.integer(value) }
  func encode(_ value: UInt16) { self.value = encoding.integer(value) }
  func encode(_ value: UInt32) { self.value = encoding.integer(value) }
  func encode(_ value: UInt64) { self.value = encoding.integer(value) }

  func encode<Encoded: Encodable>(_ value: Encoded) throws {
    self.value = try encoding.value(of: value, depth: depth, path)
  }
}

/// The fields of an object.
private struct FieldEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoding: JSONEncoding
  let fields: JSONEncoding.Fields
  let depth: Int
  let path: JSONPath

  var codingPath: [any CodingKey] { path.keys }

  private func set(_ key: some CodingKey, _ value: JSONEncoding.Value) {
    fields.value.names.append(key.stringValue)
    fields.value.values.append(value)
  }

  func encodeNil(forKey key: Key) { set(key, encoding.null) }
  func encode(_ value: Bool, forKey key: Key) { set(key, encoding.bool(value)) }
  func encode(_ value: String, forKey key: Key) { set(key, encoding.string(value)) }
  func encode(_ value: Int, forKey key: Key) { set(key, encoding.integer(value)) }
  func encode(_ value: Int64, forKey key: Key) { set(key, encoding.integer(value)) }

  func encode(_ value: Float, forKey key: Key) throws {
    set(key, try encoding.double(value, path.adding(key)))
  }

  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
    set(key, try encoding.value(of: value, depth: depth, path.adding(key)))
  }

  private func nested(_ key: some CodingKey) -> LaterEncoder {
    LaterEncoder(encoding, depth: depth, path: path.adding(key)) { set(key, $0) }
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    nested(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    nested(key).unkeyedContainer()
  }

  func superEncoder() -> any Encoder { nested(JSONKey("super")) }
  func superEncoder(forKey key: Key) -> any Encoder { nested(key) }
}

/// The elements of an array.
private struct ElementEncoder: UnkeyedEncodingContainer {
  let encoding: JSONEncoding
  let elements: JSONEncoding.Elements
  let depth: Int
  let path: JSONPath

  var codingPath: [any CodingKey] { path.keys }
  var count: Int { elements.value.count }

  func encodeNil() { elements.value.append(encoding.null) }

  func encode<Value: Encodable>(_ value: Value) throws {
    let result = try encoding.value(of: value, depth: depth, path.adding(JSONKey(count)))
    elements.value.append(result)
  }

  private func nested() -> LaterEncoder {
    let elements = elements
    let position = count
    elements.value.append(.object(JSONEncoding.Fields(JSONEncoding.FieldList())))
    return LaterEncoder(encoding, depth: depth, path: path.adding(JSONKey(position))) {
      elements.value[position] = $0
    }
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    nested().container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nested().unkeyedContainer() }
  func superEncoder() -> any Encoder { nested() }
}

/// An encoder that is handed out, and whose value is put in its place as soon as there is one.
private final class LaterEncoder: Encoder {
  private let encoder: ValueEncoder
  private let place: (JSONEncoding.Value) -> Void

  init(
    _ encoding: JSONEncoding, depth: Int, path: JSONPath,
    place: @escaping (JSONEncoding.Value) -> Void
  ) {
    encoder = ValueEncoder(encoding, depth: depth, path: path)
    self.place = place
  }

  var codingPath: [any CodingKey] { encoder.codingPath }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  private func put() { if let value = encoder.value { place(value) } }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    defer { put() }
    return encoder.container(keyedBy: type)
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    defer { put() }
    return encoder.unkeyedContainer()
  }

  func singleValueContainer() -> any SingleValueEncodingContainer {
    LaterValue(encoder: encoder, place: place)
  }
}

/// A single value that is put in its place when it is written.
private struct LaterValue: SingleValueEncodingContainer {
  let encoder: ValueEncoder
  let place: (JSONEncoding.Value) -> Void

  var codingPath: [any CodingKey] { encoder.codingPath }

  func encodeNil() { place(encoder.encoding.null) }

  func encode<Value: Encodable>(_ value: Value) throws {
    place(try encoder.encoding.value(of: value, depth: encoder.depth, encoder.path))
  }
}
