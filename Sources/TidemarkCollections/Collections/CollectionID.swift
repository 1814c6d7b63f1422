/// A type of ids for the objects of a collection. An object's key ends with the bytes of its id.
///
/// `String`, `Int` and the other whole numbers, `[UInt8]` and ``Key`` conform, and so may types of
/// yours whose raw values do; `import TidemarkFoundation` adds `UUID`. Whole numbers stand in keys
/// as decimal digits, so that keys can be read; as keys they sort as text: 1, 10, 2.
public protocol CollectionID: Hashable, Sendable {
  /// The bytes of the id in the object's key: at least one. Only equal ids may have equal bytes.
  var keyBytes: [UInt8] { get }

  /// Reads the id from the bytes of a key; nil when the bytes are no id.
  // No initializer, which would come between a program and `map([UInt8].init)`.
  static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> Self?
}

extension String: CollectionID {
  /// The text's UTF-8 bytes. Texts that Swift takes for equal but that have other bytes are
  /// different ids.
  public var keyBytes: [UInt8] { Array(utf8) }

  /// Reads the id as UTF-8 text; nil when the bytes are not UTF-8.
  public static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> String? {
    String(validating: bytes, as: UTF8.self)
  }
}

extension [UInt8]: CollectionID {
  /// The id's own bytes, unchanged.
  public var keyBytes: [UInt8] { self }

  /// Takes the bytes of the key as the id, unchanged.
  public static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> [UInt8]? { Array(bytes) }
}

extension Key: CollectionID {
  /// The bytes of the id, unchanged.
  public var keyBytes: [UInt8] { bytes }

  /// Takes the bytes of the key as the id, unchanged.
  public static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> Key? { Key(Array(bytes)) }
}

extension CollectionID where Self: FixedWidthInteger {
  /// The number's decimal digits.
  public var keyBytes: [UInt8] { Array(String(self).utf8) }

  /// Reads the id from decimal digits; nil for other bytes and for digits with leading zeros.
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
  /// The bytes of the id's raw value.
  public var keyBytes: [UInt8] { rawValue.keyBytes }

  /// Reads the raw value from the bytes, and the id from it; nil when there is no such id.
  public static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> Self? {
    RawValue.id(ofKeyBytes: bytes).flatMap { Self(rawValue: $0) }
  }
}
