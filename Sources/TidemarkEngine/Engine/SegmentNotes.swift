/// Facts found out about sealed segments, by their ids; under `reading`. Only ids of segments that
/// the store has are in it, so there are no more than those.
struct SegmentNotes {
  /// Segments that a compaction has left as they are, since they would get no smaller.
  private(set) var leftAlone: Set<UInt64> = []
  /// Segments that hold none of the engine's own records, as far as that is known.
  private(set) var recordless: Set<UInt64> = []

  mutating func leaveAlone(_ ids: some Sequence<UInt64>) { leftAlone.formUnion(ids) }

  mutating func noteRecordless(_ id: UInt64) { recordless.insert(id) }

  /// Forgets segments that are no more.
  mutating func remove(_ ids: Set<UInt64>) {
    leftAlone.subtract(ids)
    recordless.subtract(ids)
  }
}
