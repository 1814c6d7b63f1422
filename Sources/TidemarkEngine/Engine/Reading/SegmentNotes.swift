/// Facts found out about sealed segments, by their ids; under `reading`. Only ids of segments that
/// the store has are in it, so there are no more than those.
struct SegmentNotes {
  /// Segments that a compaction has left as they are, since they would get no smaller.
  private(set) var leftAlone: Set<UInt64> = []
  /// The entries of a segment that name attachments.
  private(set) var attachments: [UInt64: [AttachmentUse]] = [:]

  mutating func leaveAlone(_ ids: some Sequence<UInt64>) { leftAlone.formUnion(ids) }

  mutating func noteAttachments(_ uses: [AttachmentUse], in id: UInt64) { attachments[id] = uses }

  /// Forgets segments that are no more.
  mutating func remove(_ ids: Set<UInt64>) {
    leftAlone.subtract(ids)
    for id in ids { attachments[id] = nil }
  }
}
