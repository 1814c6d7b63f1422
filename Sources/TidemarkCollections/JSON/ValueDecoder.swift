internal import TidemarkEngine
internal import TidemarkNDJSON

/// A value as a type's initializer sees it.
struct ValueDecoder: Decoder, SingleValueDecodingContainer {
  let state: JSONDecoding
  let index: Int
  /// For a text that stands for a type of Foundation: which.
  var foreign = ForeignType.none

  var codingPath: [any CodingKey] { state.tape.path(to: index) }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    if foreign == .url { return KeyedDecodingContainer(AddressFields<Key>(value: self)) }
    guard state.tape[index].kind == .object else {
      throw state.mismatch([String: Any].self, index)
    }
    return KeyedDecodingContainer(FieldDecoder<Key>(state: state, object: index))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    if foreign == .data {
      let text = state.tape.bytes(of: state.tape[index]).dropFirst().dropLast()
      guard let bytes = Base64.decode(Array(text).rawSpan) else {
        throw DecodingError.dataCorrupted(state.context(index, "the text is not base64"))
      }
      return ByteElements(value: self, bytes: bytes)
    }
    guard state.tape[index].kind == .array else { throw state.mismatch([Any].self, index) }
    return ElementDecoder(state: state, array: index, next: index + 1)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

  func decodeNil() -> Bool { state.tape[index].kind == .null }
  func decode(_ type: Bool.Type) throws -> Bool { try state.bool(at: index) }
  func decode(_ type: String.Type) throws -> String { try state.string(at: index) }
  func decode(_ type: Float.Type) throws -> Float {
    let value = Float(try state.double(at: index))
    guard value.isFinite else {
      throw DecodingError.dataCorrupted(state.context(index, "the number does not fit Float"))
    }
    return value
  }

  func decode<Number: FixedWidthInteger & Decodable>(_ type: Number.Type) throws -> Number {
    try state.integer(type, at: index)
  }

  func decode(_ type: Double.Type) throws -> Double {
    guard foreign == .date else { return try state.double(at: index) }
    let text = state.tape.bytes(of: state.tape[index])
    guard let seconds = ForeignType.seconds(ofDate: text) else {
      throw DecodingError.dataCorrupted(state.context(index, "the text is no RFC 3339 date"))
    }
    return seconds
  }

  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try state.decode(type, at: index)
  }
}

/// The elements of an array.
private struct ElementDecoder: UnkeyedDecodingContainer {
  let state: JSONDecoding
  let array: Int
  var currentIndex = 0
  /// The node of the next element.
  var next: Int

  var codingPath: [any CodingKey] { state.tape.path(to: array) }
  var count: Int? { Int(state.tape[array].count) }
  var isAtEnd: Bool { next >= state.tape[array].next }

  private mutating func take(_ type: any Any.Type) throws -> Int {
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        type, state.context(array, "the array has no more than \(currentIndex) elements"))
    }
    defer {
      next = Int(state.tape[next].next)
      currentIndex += 1
    }
    return next
  }

  mutating func decodeNil() throws -> Bool {
    guard !isAtEnd, state.tape[next].kind == .null else { return false }
    _ = try take(Never.self)
    return true
  }

  mutating func decode(_ type: String.Type) throws -> String {
    try state.string(at: try take(type))
  }

  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try state.decode(type, at: try take(type))
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try ValueDecoder(state: state, index: try take(type)).container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try ValueDecoder(state: state, index: try take([Any].self)).unkeyedContainer()
  }

  mutating func superDecoder() throws -> any Decoder {
    ValueDecoder(state: state, index: try take((any Decoder).self))
  }
}

/// The bytes of a base64 text, as the elements that `Data` asks for.
private struct ByteElements: UnkeyedDecodingContainer {
  let value: ValueDecoder
  let bytes: [UInt8]
  var currentIndex = 0

  var codingPath: [any CodingKey] { value.codingPath }
  var count: Int? { bytes.count }
  var isAtEnd: Bool { currentIndex >= bytes.count }

  private func mismatch(_ type: any Any.Type) -> DecodingError {
    value.state.mismatch(type, value.index)
  }

  mutating func decodeNil() throws -> Bool { false }

  mutating func decode(_ type: UInt8.Type) throws -> UInt8 {
    guard !isAtEnd else { throw mismatch(type) }
    defer { currentIndex += 1 }
    return bytes[currentIndex]
  }

  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    guard let byte = try decode(UInt8.self) as? Value else { throw mismatch(type) }
    return byte
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) throws -> KeyedDecodingContainer<NestedKey> {
    throw mismatch(type)
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    throw mismatch([Any].self)
  }

  mutating func superDecoder() throws -> any Decoder { throw mismatch((any Decoder).self) }
}

/// The text of an address, as the field that `URL` asks for.
private struct AddressFields<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let value: ValueDecoder

  var codingPath: [any CodingKey] { value.codingPath }
  var allKeys: [Key] { [] }

  func contains(_ key: Key) -> Bool { key.stringValue == "relative" }
  func decodeNil(forKey key: Key) throws -> Bool { !contains(key) }

  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    guard contains(key) else {
      throw DecodingError.keyNotFound(key, value.state.context(value.index, "an address is a text"))
    }
    return try value.state.decode(type, at: value.index)
  }

  private var mismatch: DecodingError { value.state.mismatch([String: Any].self, value.index) }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<NestedKey> {
    throw mismatch
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    throw mismatch
  }

  func superDecoder() throws -> any Decoder { throw mismatch }
  func superDecoder(forKey key: Key) throws -> any Decoder { throw mismatch }
}
