/// How the values of a cache become bytes, and bytes values.
public struct CacheCoding<Value: Sendable>: Sendable {
  /// The bytes of a value.
  public let encode: @Sendable (Value) throws -> [UInt8]
  /// The value of bytes.
  public let decode: @Sendable ([UInt8]) throws -> Value

  /// A coding.
  /// - Parameters:
  ///   - encode: the bytes of a value.
  ///   - decode: the value of bytes that `encode` gave.
  public init(
    encode: @escaping @Sendable (Value) throws -> [UInt8],
    decode: @escaping @Sendable ([UInt8]) throws -> Value
  ) {
    self.encode = encode
    self.decode = decode
  }
}

extension CacheCoding<[UInt8]> {
  /// Values that are bytes already.
  public static var bytes: CacheCoding { CacheCoding(encode: { $0 }, decode: { $0 }) }
}
