/// Bytes of disk space that the rewrite of a group of segments takes until their files are removed.
///
/// Two bounds, since how well entries compress shows only when they are written.
struct CompactionRoom: Sendable, Hashable {
  /// Entries are taken to compress to a sixteenth at best.
  private static let mostCompression = 16

  /// Bytes of a segment file that are no entries: its header, locator and footer.
  private static let overheadBytes = 2 * FormatConstants.segmentHeaderBytes

  /// With fewer free bytes a rewrite is of no use.
  private(set) var least = 0
  /// With so many free bytes it can hardly fail.
  private(set) var most = 0

  /// - Parameters:
  ///   - superseded: raw bytes by segment that may go; nil where nothing goes. A segment without a
  ///     count may go whole.
  ///   - windowBytes: raw bytes that are sorted in memory; of more, files of sorted entries, the
  ///     runs, are written first, which take as much room again.
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
    // Many small files, each with its overhead, become one: that may take less than they do.
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

  /// Checks the free disk space before anything is written.
  /// - Parameter isAutomatic: whether nobody has asked for the compaction: then it needs `most`
  ///   free bytes, not `least`, so that it does not fill the disk.
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
