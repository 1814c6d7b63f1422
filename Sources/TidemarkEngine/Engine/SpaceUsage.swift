/// How many raw bytes of every segment belong to entries that something newer has replaced.
///
/// Counted in size classes, so that an overwrite never reads the old entry; compaction makes
/// the figures exact.
package struct SpaceUsage: Sendable, Hashable {
  /// By segment id. A segment without a row has not been counted yet.
  package var supersededBytes: [UInt64: Int] = [:]

  package init() {}

  /// Notes that the entry of `slot` was replaced.
  mutating func supersede(_ slot: Slot, in segment: Segment?) {
    guard let segment else { return }
    supersededBytes[segment.id, default: 0] += slot.size.approximateBytes
  }

  /// Takes back that the entry of `slot` was replaced.
  mutating func restore(_ slot: Slot, in segment: Segment?) {
    guard let segment else { return }
    let bytes = supersededBytes[segment.id, default: 0] - slot.size.approximateBytes
    supersededBytes[segment.id] = max(0, bytes)
  }

  /// For the image: what has been counted at its sequence.
  package func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.varint(supersededBytes.count)
    for (id, bytes) in supersededBytes.sorted(by: { $0.key < $1.key }) {
      writer.varint(id)
      writer.varint(bytes)
    }
    return writer.bytes
  }

  package init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    for _ in 0..<(try reader.varint(atMost: Limits.segments)) {
      let id = try reader.varint()
      supersededBytes[id] = try reader.varint(atMost: 1 << 48)
    }
    guard reader.remaining == 0 else { throw FormatError("bytes behind the space usage") }
  }
}

extension SizeClass {
  /// The class of an entry as a whole.
  static func ofEntry(key: Int, value: Int) -> SizeClass { SizeClass(bytes: key + value + 16) }
}
