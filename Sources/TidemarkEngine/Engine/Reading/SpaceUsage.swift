/// How many raw bytes of every segment belong to entries that something newer has replaced.
///
/// Counted in size classes, so that an overwrite never reads the old entry; compaction makes
/// the figures exact.
package struct SpaceUsage: Sendable, Hashable {
  /// The count of a segment.
  package struct Row: Sendable, Hashable {
    /// Raw bytes that something newer has replaced.
    package var superseded = 0
    /// Raw bytes among them of cached values and evictions: they go whatever the retention.
    package var cached = 0

    package init(superseded: Int = 0, cached: Int = 0) {
      self.superseded = superseded
      self.cached = cached
    }
  }

  /// By segment id. A segment without a row has not been counted; nothing is added to it before
  /// that, since a row with a part of the bytes would be taken for a complete one.
  package var rows: [UInt64: Row] = [:]

  package init() {}

  /// Notes that the entry of `slot` was replaced.
  mutating func supersede(_ slot: Slot, in segment: Segment?) {
    guard let segment else { return }
    add(slot.size.approximateBytes, isCached: slot.size.isCached, segment.id)
  }

  private mutating func add(_ bytes: Int, isCached: Bool, _ id: UInt64) {
    // `rows[id]?.superseded += bytes` allocates memory at each put.
    guard let place = rows.index(forKey: id) else { return }
    rows.values[place].superseded += bytes
    if isCached { rows.values[place].cached += bytes }
  }

  /// Notes an entry that says nothing but that a cached value was given up.
  mutating func noteEviction(ofKey length: Int, in segment: Segment?) {
    guard let segment else { return }
    let bytes = SizeClass.ofEntry(key: length, value: 0).approximateBytes
    add(bytes, isCached: true, segment.id)
  }

  /// Bytes of cached data in segments that can go, as far as they were counted.
  func cached(in segments: [Segment]) -> Int {
    segments.reduce(0) { $0 + (rows[$1.id]?.cached ?? 0) }
  }

  /// For the image: what has been counted at its sequence.
  package func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.varint(rows.count)
    for (id, row) in rows.sorted(by: { $0.key < $1.key }) {
      writer.varint(id)
      writer.varint(row.superseded)
      writer.varint(row.cached)
    }
    return writer.bytes
  }

  package init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    for _ in 0..<(try reader.varint(atMost: Limits.segments)) {
      let id = try reader.varint()
      let superseded = try reader.varint(atMost: 1 << 48)
      rows[id] = Row(superseded: superseded, cached: try reader.varint(atMost: superseded))
    }
    guard reader.remaining == 0 else { throw FormatError("bytes behind the space usage") }
  }
}

extension SizeClass {
  /// The class of an entry as a whole.
  static func ofEntry(key: Int, value: Int) -> SizeClass {
    SizeClass(bytes: key + value + Limits.entryOverheadBytes)
  }
}
