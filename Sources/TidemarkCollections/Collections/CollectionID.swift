/// A type whose values name the objects of a collection: the end of their keys.
///
/// `String`, `Int` and the other whole numbers, `[UInt8]` and ``Key`` conform, and so may types of
/// yours whose raw values do; `import TidemarkFoundation` adds `UUID`. Whole numbers stand in keys
/// as decimal digits, so that keys can be read; as keys they sort as text: 1, 10, 2.
public protocol CollectionID: Hashable, Sendable {
  /// The bytes in the key: at least one, and the same for equal ids only.
  var keyBytes: [UInt8] { get }

  /// The id of bytes of a key; nil where they are none.
  // No initializer, which would come between a program and `map([UInt8].init)`.
  static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> Self?
}

extension String: CollectionID {
  /// The text's UTF-8 bytes. Texts that are equal for Swift and have other bytes are other ids.
  public var keyBytes: [UInt8] { Array(utf8) }

  /// The text of UTF-8 bytes.
  public static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> String? {
    String(validating: bytes, as: UTF8.self)
  }
}

extension [UInt8]: CollectionID {
  /// The bytes themselves.
  public var keyBytes: [UInt8] { self }

  /// The bytes themselves.
  public static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> [UInt8]? { Array(bytes) }
}

extension Key: CollectionID {
  /// The bytes themselves.
  public var keyBytes: [UInt8] { bytes }

  /// The bytes themselves.
  public static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> Key? { Key(Array(bytes)) }
}

extension CollectionID where Self: FixedWidthInteger {
  /// The decimal digits.
  public var keyBytes: [UInt8] { Array(String(self).utf8) }

  /// The number of decimal digits, as they are written: without zeros in front.
  public static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> Self? {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let number = Self(text), String(number) == text else { return nil }
    return number
  }
}

extension Int: CollectionID {}
extension Int32: CollectionID {}
extension Int64: CollectionID {}
extension UInt: CollectionID {}
extension UInt32: CollectionID {}
extension UInt64: CollectionID {}

extension CollectionID where Self: RawRepresentable, RawValue: CollectionID {
  /// The raw value's bytes.
  public var keyBytes: [UInt8] { rawValue.keyBytes }

  /// The id whose raw value has these bytes.
  public static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> Self? {
    RawValue.id(ofKeyBytes: bytes).flatMap { Self(rawValue: $0) }
  }
}
