/// Facts about sealed segments, by their ids, that take long to find out. A part of ``ReadState``,
/// under the readers' lock. Compaction removes the ids of segments that it replaces.
struct SegmentNotes {
  /// Segments that a compaction would not make smaller, and has left as they are.
  private(set) var leftAlone: Set<UInt64> = []
  /// By segment, the entries that name attachments; no row where nobody has looked yet.
  private(set) var attachments: [UInt64: [AttachmentUse]] = [:]

  mutating func leaveAlone(_ ids: some Sequence<UInt64>) { leftAlone.formUnion(ids) }
  mutating func noteAttachments(_ uses: [AttachmentUse], in id: UInt64) { attachments[id] = uses }

  /// Forgets segments that have left the log.
  mutating func remove(_ ids: Set<UInt64>) {
    leftAlone.subtract(ids)
    for id in ids { attachments[id] = nil }
  }
}
