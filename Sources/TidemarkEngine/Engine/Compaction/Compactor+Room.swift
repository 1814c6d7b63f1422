extension Compactor {
  /// Entries are taken to compress to a sixteenth at best.
  private static let mostCompression = 16

  /// Bytes of a segment file that are no entries: its header, locator and footer.
  private static let overheadBytes = 2 * FormatConstants.segmentHeaderBytes

  /// Bytes of disk space that the rewrite of a group of segments takes until their files are
  /// removed. With fewer than `least` free it is of no use, with `most` it can hardly fail: two
  /// bounds, since how well entries compress shows only when they are written.
  typealias Room = (least: Int, most: Int)

  /// The room that rewriting a group takes.
  func room(for group: CompactionPlan.Group, _ floor: CompactionFloor) -> Room {
    let usage = reader.snapshot.usage.rows
    var room: Room = (0, 0)
    var appended = (least: 0, most: 0, memory: 0)
    var bounded = Self.overheadBytes
    for (segment, row) in zip(group.segments, group.rows) {
      let length = segment.usedLength()
      let smallest = min(length, row.rawBytes / Self.mostCompression)
      // A segment without a count may go whole.
      let gone = usage[row.id].map { floor.drops ? $0.superseded : $0.cached } ?? row.rawBytes
      let share = Double(min(gone, row.rawBytes)) / Double(max(1, row.rawBytes))
      room.least += Int(Double(smallest) * (1 - share))
      room.most += length
      bounded += CompactionPlan.boundedBytes(row)
      guard segment.kind == .appended else { continue }
      appended.least += smallest
      appended.most += length
      appended.memory += CompactionPlan.boundedBytes(row)
    }
    // Many small files, each with its overhead, become one: that may take less than they do.
    room.most = min(room.most, bounded)
    // More than is sorted in memory goes to files first, which take as much room again.
    guard appended.memory > configuration.compactionWindowBytes else { return room }
    return (room.least + appended.least, room.most + appended.most)
  }

  /// Checks the free disk space before anything is written.
  /// - Parameter isAutomatic: whether nobody has asked for the compaction: then it needs `most`
  ///   free bytes, not `least`, so that it does not fill the disk.
  /// - Throws: `noSpace`.
  func check(_ room: Room, isAutomatic: Bool, isAskedFor: Bool) throws(TidemarkError) {
    guard var free = freeBytes else { return }
    let needed = isAutomatic ? room.most : room.least
    if free < needed, isAskedFor { free = max(free, environment.freeBytesAfterPurge?(path) ?? 0) }
    guard free < needed else { return }
    throw TidemarkError(
      .noSpace,
      "until a compaction is done it takes at least \(needed) bytes on the disk, where \(free) are "
        + "free; make room, and compact then")
  }
}
