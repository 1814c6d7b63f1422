/// Opens views, and checks that what a view or a link between versions needs is still kept.
extension Reader {
  /// Opens a view (a read snapshot) as of a sequence; until it is freed compaction keeps its state.
  /// - Parameters:
  ///   - sequence: nil is the newest.
  ///   - orOldest: whether the oldest state that is kept takes the place of one that is not.
  /// - Throws: `historyGone` when the state is no longer kept.
  package func view(
    at sequence: UInt64? = nil, orOldest: Bool = false
  ) throws(TidemarkError) -> EngineView {
    let (pinned, epoch) = try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
      let oldest = min(read.visible, read.manifest.historyFrom)
      let wanted = max(sequence ?? read.visible, orOldest ? oldest : 0)
      guard wanted <= read.visible else {
        throw TidemarkError(
          .invalidArgument, "sequence \(wanted) is not reached yet; the newest is \(read.visible)")
      }
      // In one hold: either a compaction's raise of `historyFrom` sees this pin, or this sees that.
      try read.manifest.checkKept(wanted)
      read.views[wanted, default: 0] += 1
      return (wanted, read.manifest.epoch(of: wanted))
    }
    return EngineView(self, sequence: pinned, epoch: epoch)
  }

  /// Makes sure that a view can still be answered. This process keeps what the view needs; a writer
  /// in another process knows nothing of it, and after a suspension that may have been one.
  package func checkStands(_ view: EngineView) throws(TidemarkError) {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try Self.checkStands(view, read)
    }
  }

  static func checkStands(_ view: EngineView, _ read: borrowing ReadState) throws(TidemarkError) {
    // The view needs the state at `pinned` (below `sequence` where entries' own times decide), and
    // the same entries up to `sequence`: after a crash others may have their sequences.
    try read.manifest.checkKept(view.pinned)
    guard read.hasKept(view.sequence, of: view.epoch) else {
      throw TidemarkError(
        .historyDiverged,
        "the view's sequence \(view.sequence) was lost in a crash of the writer; open a new view")
    }
  }

  /// Called once for each view, when it is freed.
  func unpin(_ sequence: UInt64) {
    reading.withLock { read in
      let count = read.views[sequence] ?? 0
      read.views[sequence] = count > 1 ? count - 1 : nil
    }
  }

  /// The entry that the index or another entry's `previous` names.
  /// - Returns: nil when compaction dropped it.
  /// - Throws: `damaged` when it must be there and is not.
  func linkedEntry(_ sequence: UInt64) throws(TidemarkError) -> LogEntry? {
    if let entry = try entryIfKept(at: sequence) { return entry }
    let manifest = manifest
    if let hole = manifest.damage(at: sequence) {
      throw TidemarkError(
        .damaged, "a version of the key was lost in a damaged part of the log",
        sequences: hole.firstSequence...hole.lastSequence)
    }
    // The limits up to which compaction drops superseded versions, tombstones and cached versions.
    let mayBeGone = max(manifest.historyFrom, manifest.droppedThrough, manifest.evictedThrough)
    guard sequence <= mayBeGone else { throw missing(sequence) }
    return nil
  }

  /// Whether a cached version is gone. Above `evictedThrough` none is, and nothing has to be read.
  func hasEvicted(_ sequence: UInt64) throws(TidemarkError) -> Bool {
    guard sequence <= manifest.evictedThrough else { return false }
    return try entryIfKept(at: sequence) == nil
  }

  /// Makes sure that an entry is of the key for which the index or a link has named it.
  /// - Throws: `damaged`.
  func check(_ entry: LogEntry, isOf key: RawSpan) throws(TidemarkError) {
    guard entry.front.key(of: entry.head).isEqual(to: key) else {
      throw entry.segment.damage(
        .format(FormatError("an entry of another key than the index or a link says")),
        offset: entry.front.offset, sequences: entry.sequence...entry.sequence)
    }
  }
}

extension Manifest {
  /// Makes sure that the state at a sequence is kept. `historyFrom` is the oldest state that a view
  /// can show, so that sequence itself passes; 1 means that nothing was dropped, so 0 passes, too.
  func checkKept(_ sequence: UInt64) throws(TidemarkError) {
    guard sequence < historyFrom, historyFrom > 1 else { return }
    throw TidemarkError(
      .historyGone,
      "history before sequence \(historyFrom) is no longer kept; ask for that or later",
      sequences: historyFrom...historyFrom)
  }
}
