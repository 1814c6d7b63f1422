internal import TidemarkEngine

/// A label of an entry: 1 to 255 bytes, compared byte by byte. The length is checked when a write
/// or a batch takes the label, not here.
public struct EntryLabel: Sendable, Hashable {
  /// The label's bytes.
  public var bytes: [UInt8]

  /// A label of these bytes.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// A label of a text's UTF-8 bytes.
  public init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

  /// The label as text; bytes that are not UTF-8 show as U+FFFD.
  public var text: String { String(decoding: bytes, as: UTF8.self) }
}

extension EntryLabel: Comparable {
  /// Byte order.
  public static func < (a: EntryLabel, b: EntryLabel) -> Bool {
    a.bytes.rawSpan.compare(to: b.bytes.rawSpan) < 0
  }
}

extension EntryLabel: ExpressibleByStringInterpolation, CustomStringConvertible {
  /// A label of the literal's UTF-8 bytes.
  public init(stringLiteral text: String) { self.init(text) }

  /// The label as text.
  public var description: String { text }
}

extension EntryLabel: BytesConvertible {
  /// Calls `body` with the label's bytes.
  @inlinable
  public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try bytes.withBytes(body)
  }
}

/// A label and how many keys carry it.
public struct LabelCount: Sendable, Hashable {
  /// The label.
  public var label: EntryLabel
  /// How many keys carry it.
  public var count: Int

  /// A label and how many keys carry it.
  public init(label: EntryLabel, count: Int) { (self.label, self.count) = (label, count) }
}
