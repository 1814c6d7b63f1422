#if canImport(Darwin)
  public import Foundation
#else
  public import FoundationEssentials
#endif
public import Tidemark

extension Data: BytesConvertible {
  /// Calls `body` with the data's bytes, without a copy.
  public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try body(bytes)
  }
}

extension UUID: BytesConvertible {
  /// The UUID's sixteen bytes, in the order of RFC 9562.
  public var bytes: [UInt8] {
    let id = uuid
    return [
      id.0, id.1, id.2, id.3, id.4, id.5, id.6, id.7, id.8, id.9, id.10, id.11, id.12, id.13, id.14,
      id.15,
    ]
  }

  /// Creates a UUID from sixteen bytes, such as those of a key; nil for any other number of bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    self.init(
      uuid: (
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8],
        bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
      ))
  }

  /// Calls `body` with the UUID's sixteen bytes.
  public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try body(bytes.rawSpan)
  }
}

extension UUID: CollectionID {
  /// The UUID's text in capitals, as UTF-8 bytes, so that people can read the keys.
  public var keyBytes: [UInt8] { Array(uuidString.utf8) }

  /// Reads a UUID from its text in a key; nil when the text is no UUID.
  public static func id(ofKeyBytes bytes: ArraySlice<UInt8>) -> UUID? {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let id = UUID(uuidString: text), id.uuidString == text else { return nil }
    return id
  }
}

extension URL: BytesConvertible {
  /// Calls `body` with the UTF-8 bytes of the absolute address.
  public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try absoluteString.withBytes(body)
  }
}

extension Entry {
  /// The entry's value as `Data`.
  public var data: Data { Data(value) }
}

extension StoreReader {
  /// Reads the value of a key as `Data`.
  /// - Returns: nil when there is no such key.
  public func data(forKey key: some BytesConvertible) throws(TidemarkError) -> Data? {
    try value(forKey: key).map { Data($0) }
  }
}
