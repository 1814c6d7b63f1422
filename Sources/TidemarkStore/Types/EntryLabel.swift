internal import TidemarkEngine

/// A label of an entry: 1 to 255 bytes, compared byte by byte. The length is checked when a write
/// or a batch takes the label, not here.
public struct EntryLabel: Sendable, Hashable {
  /// The bytes of the label, by which stores compare it.
  public var bytes: [UInt8]

  /// Creates a label from bytes. A write checks later that there are 1 to 255 of them.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Creates a label from the UTF-8 bytes of a text.
  public init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

  /// The label as text; bytes that are not UTF-8 show as U+FFFD.
  public var text: String { String(decoding: bytes, as: UTF8.self) }
}

extension EntryLabel: Comparable {
  /// Sorts labels byte by byte, as the store does.
  public static func < (a: EntryLabel, b: EntryLabel) -> Bool {
    a.bytes.rawSpan.compare(to: b.bytes.rawSpan) < 0
  }
}

extension EntryLabel: ExpressibleByStringInterpolation, CustomStringConvertible {
  /// Creates a label from a string literal, by its UTF-8 bytes.
  public init(stringLiteral text: String) { self.init(text) }

  /// The label as text.
  public var description: String { text }
}

extension EntryLabel: BytesConvertible {
  /// Calls `body` with the label's bytes, without a copy.
  @inlinable
  public func withBytes<R, E: Error>(_ body: (RawSpan) throws(E) -> R) throws(E) -> R {
    try bytes.withBytes(body)
  }
}

/// A label and the number of keys that carry it, as ``StoreReader/labels()`` reports them.
public struct LabelCount: Sendable, Hashable {
  /// The label that was counted.
  public var label: EntryLabel
  /// The number of keys that carry the label.
  public var count: Int

  /// Creates a count for a label.
  public init(label: EntryLabel, count: Int) { (self.label, self.count) = (label, count) }
}
