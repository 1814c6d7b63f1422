/// How many raw bytes (before compression) of every segment are garbage: entries that a newer entry
/// of their key has replaced. Compactions choose segments by it. The reader's lock guards it.
/// Bytes are those of the size classes in the index, so that an overwrite never reads the old
/// entry; a compaction that rewrites a segment makes its figures exact. A touch, which renews a
/// value's validity, has the size class of that value: figures may exceed the segment's bytes.
package struct SpaceUsage: Sendable, Hashable {
  /// The count of a segment.
  package struct Row: Sendable, Hashable {
    /// Raw bytes of entries that a newer entry has replaced.
    package var superseded = 0
    /// The part that is cached values (copies of what a server has) and evictions (entries that
    /// give one up): a compaction drops these however long history is kept.
    package var cached = 0
  }

  /// By segment id. A segment without a row has not been counted yet, and until then nothing is
  /// added to it: a row with a part of the bytes would be taken for a complete one.
  package var rows: [UInt64: Row] = [:]

  package init() {}

  /// Counts the entry of `slot` as replaced.
  /// - Parameter segment: the one that holds it; nil when a compaction has dropped that.
  mutating func supersede(_ slot: Slot, in segment: Segment?) {
    add(slot.size.approximateBytes, isCached: slot.size.isCached, in: segment)
  }

  private mutating func add(_ bytes: Int, isCached: Bool, in segment: Segment?) {
    // Not `rows[id]?.superseded += bytes`, which allocates memory at each put.
    guard let segment, let row = rows.index(forKey: segment.id) else { return }
    rows.values[row].superseded += bytes
    if isCached { rows.values[row].cached += bytes }
  }

  /// Counts an eviction itself, which is garbage once it is in the index.
  mutating func noteEviction(ofKey length: Int, in segment: Segment?) {
    let bytes = SizeClass.ofEntry(key: length, value: 0).approximateBytes
    add(bytes, isCached: true, in: segment)
  }

  /// Bytes of replaced cached data in the segments that were counted.
  func cached(in segments: [Segment]) -> Int {
    segments.reduce(0) { $0 + (rows[$1.id]?.cached ?? 0) }
  }

  /// The bytes that go with a sorted run of the index: opening counts on from the run's sequence.
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
  /// The class of an entry's key and value with the engine's overhead.
  static func ofEntry(key: Int, value: Int) -> SizeClass {
    SizeClass(bytes: key + value + Limits.entryOverheadBytes)
  }
}
