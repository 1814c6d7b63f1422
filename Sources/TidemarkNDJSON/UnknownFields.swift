internal import TidemarkEngine

/// The names of fields that an import passed over, for one warning.
///
/// Bounded, since a hostile file can have a new name in every line.
package struct UnknownFields: Sendable {
  /// Most names that are kept.
  package static var maximumCount: Int { 16 }
  /// The longest name that is kept whole, in bytes.
  package static var maximumLength: Int { 64 }

  private var bytes: [[UInt8]] = []

  package init() {}

  package var isEmpty: Bool { bytes.isEmpty }

  /// The names, in the order in which they came up.
  package var names: [String] { bytes.map { String(decoding: $0, as: UTF8.self) } }

  /// Adds a name unless it is known, or there are enough.
  package mutating func insert(_ name: RawSpan) {
    guard bytes.count < Self.maximumCount else { return }
    let kept = name.extracting(first: Self.maximumLength)
    for known in bytes where known.rawSpan.isEqual(to: kept) { return }
    bytes.append([UInt8](copying: kept))
  }

  /// Adds the names that another one has.
  package mutating func formUnion(_ other: UnknownFields) {
    for name in other.bytes { insert(name.rawSpan) }
  }

  /// Forgets the names behind the first `count`.
  mutating func truncate(to count: Int) { bytes.removeLast(bytes.count - count) }

  var count: Int { bytes.count }
}
