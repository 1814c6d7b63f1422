/// The way in which a cache turns values into bytes and bytes into values.
public struct CacheCoding<Value: Sendable>: Sendable {
  /// Makes the bytes that are stored for a value.
  public let encode: @Sendable (Value) throws -> [UInt8]
  /// Makes a value from the bytes that ``encode`` made.
  public let decode: @Sendable ([UInt8]) throws -> Value

  /// Creates a coding of your own for the values of a cache.
  /// - Parameters:
  ///   - encode: makes the bytes that are stored for a value.
  ///   - decode: makes a value from the bytes that `encode` made.
  public init(
    encode: @escaping @Sendable (Value) throws -> [UInt8],
    decode: @escaping @Sendable ([UInt8]) throws -> Value
  ) {
    self.encode = encode
    self.decode = decode
  }
}

extension CacheCoding<[UInt8]> {
  /// Stores values that are `[UInt8]` already, unchanged.
  public static var bytes: CacheCoding { CacheCoding(encode: { $0 }, decode: { $0 }) }
}
