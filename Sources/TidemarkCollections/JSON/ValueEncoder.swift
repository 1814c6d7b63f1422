/// The place where a value writes itself.
final class ValueEncoder: Encoder {
  let encoding: JSONEncoding
  let depth: Int
  let path: JSONPath
  /// Puts what was written in its place, where the encoder is handed out to be used later.
  private let place: ((JSONEncoding.Value) -> Void)?
  /// Nil until something was written.
  var value: JSONEncoding.Value? {
    didSet { if let place, let value { place(value) } }
  }

  init(
    _ encoding: JSONEncoding, depth: Int, path: JSONPath,
    place: ((JSONEncoding.Value) -> Void)? = nil
  ) {
    self.encoding = encoding
    self.depth = depth
    self.path = path
    self.place = place
  }

  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    encoding.open(depth: depth, path)
    let fields = if case .object(let known) = value { known } else { JSONEncoding.Fields(.init()) }
    value = .object(fields)
    return KeyedEncodingContainer(
      FieldEncoder<Key>(encoding: encoding, fields: fields, depth: depth + 1, path: path))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    encoding.open(depth: depth, path)
    let elements = if case .array(let known) = value { known } else { JSONEncoding.Elements([]) }
    value = .array(elements)
    return ElementEncoder(encoding: encoding, elements: elements, depth: depth + 1, path: path)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension ValueEncoder: SingleValueEncodingContainer {
  func encodeNil() { value = encoding.null }
  func encode(_ value: Bool) { self.value = encoding.bool(value) }
  func encode(_ value: String) { self.value = encoding.string(value) }
  func encode(_ value: Double) throws { self.value = try encoding.double(value, path) }
  func encode(_ value: Float) throws { self.value = try encoding.double(value, path) }

  func encode<Number: FixedWidthInteger & Encodable>(_ value: Number) {
    self.value = encoding.integer(value)
  }

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
    set(key, try encoding.double(value, .next(path, key)))
  }

  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
    set(key, try encoding.value(of: value, depth: depth, .next(path, key)))
  }

  private func nested(_ key: some CodingKey) -> ValueEncoder {
    ValueEncoder(encoding, depth: depth, path: .next(path, key)) { set(key, $0) }
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
    let result = try encoding.value(of: value, depth: depth, .next(path, JSONKey(count)))
    elements.value.append(result)
  }

  private func nested() -> ValueEncoder {
    let elements = elements
    let position = count
    elements.value.append(.object(JSONEncoding.Fields(.init())))
    return ValueEncoder(encoding, depth: depth, path: .next(path, JSONKey(position))) {
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
