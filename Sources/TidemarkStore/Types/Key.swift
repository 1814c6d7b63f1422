internal import TidemarkEngine

/// The key of an entry: 1 to 65,535 bytes, compared byte by byte. Writes check the length; a prefix
/// may be empty.
///
/// A key of text is its UTF-8 bytes. Texts that `String` takes for equal but that have other bytes
/// (composed and decomposed characters) are two keys.
///
/// ```swift
/// let key: Key = "note/1"
/// let other: Key = "note/\(number)"
/// let binary = Key([0x00, 0xff])
/// ```
public struct Key: Sendable, Hashable {
  /// The bytes of the key, by which stores compare and sort it.
  public var bytes: [UInt8]

  /// Creates a key from bytes. A write checks later that there are 1 to 65,535 of them.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Creates a key from the UTF-8 bytes of a text.
  public init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

  /// Creates a key from the bytes of another type, such as a label, or `UUID` with
  /// TidemarkFoundation.
  @_disfavoredOverload
  public init(_ bytes: some BytesConvertible) {
    self.bytes = bytes.withBytes { [UInt8](copying: $0) }
  }

  /// The key as text; bytes that are not UTF-8 show as U+FFFD.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Whether the key begins with these bytes.
  public func hasPrefix(_ prefix: some BytesConvertible) -> Bool {
    prefix.withBytes { bytes.rawSpan.hasPrefix($0) }
  }
}

extension Key: Comparable {
  /// Sorts keys byte by byte, as the store does.
  public static func < (a: Key, b: Key) -> Bool { a.bytes.rawSpan.compare(to: b.bytes.rawSpan) < 0 }
}

extension Key: ExpressibleByStringInterpolation, CustomStringConvertible {
  /// Creates a key from a string literal, by its UTF-8 bytes.
  public init(stringLiteral text: String) { self.init(text) }

  /// The key as text, the same as ``text``.
  public var description: String { text }
}

extension Key: BytesConvertible {
  /// Calls `body` with the key's bytes, without a copy.
  @inlinable
  public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try bytes.withBytes(body)
  }
}
