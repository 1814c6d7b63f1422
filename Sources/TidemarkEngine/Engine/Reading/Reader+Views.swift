extension Reader {
  /// A view as of a sequence.
  /// - Parameter sequence: nil is the newest.
  /// - Throws: `historyGone` when that is no longer kept.
  package func view(at sequence: UInt64? = nil) throws(TidemarkError) -> EngineView {
    let (pinned, epoch) = try reading.withLock {
      (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
      let wanted = sequence ?? read.visible
      guard wanted <= read.visible else {
        throw TidemarkError(
          .invalidArgument,
          "sequence \(wanted) is not reached yet; the newest is \(read.visible)")
      }
      try Self.checkKept(wanted, read.manifest)
      read.views.pin(wanted)
      return (wanted, read.manifest.epoch(of: wanted))
    }
    return EngineView(self, sequence: pinned, epoch: epoch)
  }

  /// Whether a view can still be answered. Its own store keeps what it needs; for a reader
  /// beside a writer in another process, that one may have dropped it.
  package func checkStands(_ view: EngineView) throws(TidemarkError) {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try Self.checkStands(view, read)
    }
  }

  static func checkStands(
    _ view: EngineView, _ read: borrowing ReadState
  ) throws(TidemarkError) {
    try checkKept(view.pinned, read.manifest)
    guard read.hasKept(view.sequence, of: view.epoch) else {
      throw TidemarkError(
        .historyDiverged,
        "the view's sequence \(view.sequence) was lost in a crash of the writer; open a new view")
    }
  }

  static func checkKept(_ sequence: UInt64, _ manifest: Manifest) throws(TidemarkError) {
    guard sequence < manifest.historyFrom, manifest.historyFrom > 1 else { return }
    throw TidemarkError(
      .historyGone,
      "history before sequence \(manifest.historyFrom) is no longer kept; ask for that or later",
      sequences: manifest.historyFrom...manifest.historyFrom)
  }

  func unpin(_ sequence: UInt64) { reading.withLock { $0.views.unpin(sequence) } }

  /// The entry that a link names.
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
    let mayBeGone = max(manifest.historyFrom, manifest.droppedThrough, manifest.evictedThrough)
    guard sequence <= mayBeGone else { throw missing(sequence) }
    return nil
  }

  /// Whether a cached version is gone since something newer has replaced it.
  func hasEvicted(_ sequence: UInt64) throws(TidemarkError) -> Bool {
    guard sequence <= manifest.evictedThrough else { return false }
    return try entryIfKept(at: sequence) == nil
  }

  /// An index image or a link that names an entry of another key must not pass for an answer.
  func check(_ entry: LogEntry, isOf key: RawSpan) throws(TidemarkError) {
    guard entry.front.key(of: entry.head).isEqual(to: key) else {
      throw entry.segment.damage(
        .format(FormatError("an entry of another key than the index or a link says")),
        offset: entry.front.offset, sequences: entry.sequence...entry.sequence)
    }
  }
}
