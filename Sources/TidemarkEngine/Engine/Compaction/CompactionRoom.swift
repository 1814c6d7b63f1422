/// Bytes on the disk that a compaction of some segments takes until theirs are given back.
///
/// An estimate between bounds, since how well entries compress shows only when they are written.
struct CompactionRoom: Sendable, Hashable {
  /// Entries get no smaller than a sixteenth, but for rare ones.
  private static let mostCompression = 16

  /// Bytes of a segment file that are no entries: its header, locator and footer.
  private static let overheadBytes = 2 * FormatConstants.segmentHeaderBytes

  /// With less there is no use to begin.
  private(set) var least = 0
  /// With so much it can hardly fail.
  private(set) var most = 0

  /// - Parameters:
  ///   - superseded: raw bytes by segment that may go; nil where nothing goes. Of segments that
  ///     were not counted nothing is known.
  ///   - windowBytes: raw bytes that are put in order in memory; of more, runs are written first.
  init(_ group: CompactionPlan.Group, superseded: [UInt64: Int]?, windowBytes: Int) {
    var appended = (least: 0, most: 0, memory: 0)
    var bounded = Self.overheadBytes
    for (segment, row) in zip(group.segments, group.rows) {
      let length = segment.usedLength()
      let smallest = min(length, row.rawBytes / Self.mostCompression)
      let gone = superseded.map { $0[row.id] ?? row.rawBytes } ?? 0
      let share = Double(min(gone, row.rawBytes)) / Double(max(1, row.rawBytes))
      least += Int(Double(smallest) * (1 - share))
      most += length
      bounded += CompactionPlan.boundedBytes(row)
      guard segment.kind == .appended else { continue }
      appended.least += smallest
      appended.most += length
      appended.memory += CompactionPlan.boundedBytes(row)
    }
    // Merged segments of few entries need far less than their files take, since one overhead stays.
    most = min(most, bounded)
    guard appended.memory > windowBytes else { return }
    least += appended.least
    most += appended.most
  }
}

extension Compactor {
  /// The room that rewriting a group takes.
  func room(for group: CompactionPlan.Group, _ floor: CompactionFloor) -> CompactionRoom {
    let rows = reader.snapshot.usage.rows
    let superseded = rows.mapValues { floor.drops ? $0.superseded : $0.cached }
    return CompactionRoom(
      group, superseded: superseded, windowBytes: configuration.compactionWindowBytes)
  }

  /// Looks for room before anything is written.
  /// - Parameter isAutomatic: whether nobody has asked for the compaction, which then leaves the
  ///   disk to others unless there is room to be sure.
  /// - Throws: `noSpace`.
  func check(_ room: CompactionRoom, isAutomatic: Bool) throws(TidemarkError) {
    guard let free = freeBytes else { return }
    let needed = isAutomatic ? room.most : room.least
    guard free < needed else { return }
    throw TidemarkError(
      .noSpace,
      "until a compaction is done it takes at least \(needed) bytes on the disk, where \(free) are "
        + "free; make room, and compact then")
  }
}
