internal import TidemarkNDJSON

/// The fields of an object.
struct FieldDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let state: JSONDecoding
  let object: Int

  var codingPath: [any CodingKey] { state.tape.path(to: object) }

  var allKeys: [Key] {
    // A type that asks for all names knows them all: a dictionary.
    state.noteAllAsked(in: object)
    return state.tape.members(of: object).compactMap {
      Key(stringValue: state.tape.string(state.tape[$0]))
    }
  }

  private func value(_ key: Key) throws -> Int {
    guard
      let index = state.value(of: key.stringValue, in: object)
        ?? state.standIn(for: key.stringValue, in: object)
    else {
      throw DecodingError.keyNotFound(
        key, state.context(object, "there is no field \(key.stringValue)"))
    }
    return index
  }

  /// The value of a field that is there and not null.
  private func present(_ key: Key) -> Int? {
    guard let index = state.value(of: key.stringValue, in: object),
      state.tape[index].kind != .null
    else { return nil }
    return index
  }

  func contains(_ key: Key) -> Bool { state.value(of: key.stringValue, in: object) != nil }

  func decodeNil(forKey key: Key) throws -> Bool { state.tape[try value(key)].kind == .null }

  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    let index = try value(key)
    defer { state.goOn(behind: index, in: object) }
    return try state.decode(type, at: index)
  }

  func decodeIfPresent<Value: Decodable>(
    _ type: Value.Type, forKey key: Key
  ) throws -> Value? {
    guard let index = present(key) else { return nil }
    defer { state.goOn(behind: index, in: object) }
    return try state.decode(type, at: index)
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try ValueDecoder(state: state, index: try value(key)).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try ValueDecoder(state: state, index: try value(key)).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder {
    guard let index = state.value(of: "super", in: object) else {
      throw DecodingError.keyNotFound(
        JSONKey("super"), state.context(object, "there is no field super"))
    }
    return ValueDecoder(state: state, index: index)
  }

  func superDecoder(forKey key: Key) throws -> any Decoder {
    ValueDecoder(state: state, index: try value(key))
  }
}

/// Fields of the commonest types, which need no decoder of their own.
extension FieldDecoder {
  private func optional<Number: FixedWidthInteger>(_ key: Key) throws -> Number? {
    try present(key).map { try state.integer(Number.self, at: $0) }
  }

  func decode(_ type: String.Type, forKey key: Key) throws -> String {
    try state.string(at: try value(key))
  }

  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
    try present(key).map(state.string(at:))
  }

  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
    try state.bool(at: try value(key))
  }

  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
    try present(key).map(state.bool(at:))
  }

  func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
    try state.double(at: try value(key))
  }

  func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
    try present(key).map(state.double(at:))
  }

  @inline(__always)
  func decode<Number: FixedWidthInteger & Decodable>(
    _ type: Number.Type, forKey key: Key
  ) throws -> Number { try state.integer(type, at: try value(key)) }

  // The standard library's default would be taken before a generic function for every number.
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try optional(key) }
  func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try optional(key) }
  func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try optional(key) }
  func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try optional(key) }
  func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try optional(key) }
  func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try optional(key) }
  func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try optional(key) }
  func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try optional(key) }
  func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try optional(key) }
  func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try optional(key) }
}
