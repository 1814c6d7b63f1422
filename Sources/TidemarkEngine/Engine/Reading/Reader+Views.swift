/// The store as it was after one sequence, or what entries with certain times of their own make of
/// it; what it needs stays until it goes.
package final class EngineView: Sendable {
  package let reader: Reader
  package let sequence: UInt64
  /// Entries with a later time of their own do not count; nil when all do.
  package let ownTimeLimit: Timestamp?
  /// The epoch of the sequence.
  package let epoch: UInt64
  /// The state of this sequence, and all behind it, is kept for the view.
  let pinned: UInt64

  init(
    _ reader: Reader, sequence: UInt64, epoch: UInt64, pinned: UInt64? = nil,
    ownTimeLimit: Timestamp? = nil
  ) {
    self.reader = reader
    self.epoch = epoch
    self.sequence = sequence
    self.pinned = pinned ?? sequence
    self.ownTimeLimit = ownTimeLimit
  }

  deinit { reader.unpin(pinned) }

  /// Whether an entry of the log counts.
  package func shows(_ entry: LogEntry) throws(TidemarkError) -> Bool {
    guard entry.sequence <= sequence else { return false }
    guard let ownTimeLimit else { return true }
    return try entry.time() <= ownTimeLimit
  }
}

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

  func unpin(_ sequence: UInt64) {
    reading.withLock { $0.views.unpin(sequence) }
  }

  /// The newest entry of a key that counts in a view.
  /// - Parameters:
  ///   - newest: the key's newest sequence.
  ///   - view: the view.
  /// - Returns: nil when the key had no entry yet.
  func version(
    newest: UInt64, in view: EngineView
  ) throws(TidemarkError) -> LogEntry? {
    var candidate = newest
    // Links lead strictly downward, so this ends.
    while true {
      guard let entry = try linkedEntry(candidate) else {
        let manifest = manifest
        try Self.checkKept(view.pinned, manifest)
        return nil
      }
      if try view.shows(entry) { return entry }
      guard entry.head.previous > 0 else { return nil }
      candidate = entry.head.previous
    }
  }

  /// The entry that a link names.
  /// - Returns: nil when compaction dropped it.
  /// - Throws: `damaged` when it must be there and is not.
  func linkedEntry(_ sequence: UInt64) throws(TidemarkError) -> LogEntry? {
    if let entry = try entryIfKept(at: sequence) { return entry }
    let manifest = manifest
    if let hole = manifest.damage.first(where: {
      $0.firstSequence <= sequence && sequence <= $0.lastSequence
    }) {
      throw TidemarkError(
        .damaged, "a version of the key was lost in a damaged part of the log",
        sequences: hole.firstSequence...hole.lastSequence)
    }
    guard
      sequence
        <= max(manifest.historyFrom, manifest.droppedThrough, manifest.evictedThrough)
    else { throw missing(sequence) }
    return nil
  }

  /// Whether a cached version is gone since something newer has replaced it.
  func hasEvicted(_ sequence: UInt64) throws(TidemarkError) -> Bool {
    guard sequence <= manifest.evictedThrough else { return false }
    return try entryIfKept(at: sequence) == nil
  }

  /// The entry of a key in a view; nil when the key was absent or deleted then.
  package func entry(
    forKey key: RawSpan, in view: EngineView
  ) throws(TidemarkError) -> LogEntry? {
    // Also when the key is not found: its tombstone may have gone with the history.
    try checkStands(view)
    guard let slot = try slot(ofKey: key) else { return nil }
    if view.ownTimeLimit == nil, slot.sequence <= view.sequence, slot.isDeleted { return nil }
    guard let entry = try version(newest: slot.sequence, in: view),
      !entry.head.kind.removes
    else { return nil }
    try check(entry, isOf: key)
    return entry
  }

  /// An index image or a link that names an entry of another key must not pass for an answer.
  func check(_ entry: LogEntry, isOf key: RawSpan) throws(TidemarkError) {
    guard entry.front.key(of: entry.head).isEqual(to: key) else {
      throw entry.segment.damage(
        .format(FormatError("an entry of another key than the index or a link says")),
        offset: entry.front.offset, sequences: entry.sequence...entry.sequence)
    }
  }

  /// The versions of a key that are kept, newest first, deletes among them.
  /// - Parameters:
  ///   - sequence: newer versions are passed over.
  ///   - limit: so many at most; older ones are not looked at.
  package func history(
    ofKey key: RawSpan, upTo sequence: UInt64 = .max, limit: Int = .max
  ) throws(TidemarkError) -> [LogEntry] {
    var entries: [LogEntry] = []
    guard limit > 0 else { return entries }
    var walk = try VersionWalk(self, ofKey: key, upTo: sequence)
    while entries.count < limit, let entry = try walk.next() { entries.append(entry) }
    return entries
  }
}
