public import TidemarkEngine

/// The result of a compaction, or of a dry run, which only estimates it.
public struct CompactionSummary: Sendable, Hashable {
  /// The number of log files before the compaction.
  public var segmentsBefore: Int
  /// The number of log files after the compaction.
  public var segmentsAfter: Int
  /// The number of log files that the compaction replaced. 0 for a dry run, and when there was
  /// nothing to gain, so that the log is unchanged.
  public var segmentsRewritten: Int
  /// The bytes of the log before the compaction.
  public var bytesBefore: Int
  /// The bytes of the log after the compaction, with entries that were written meanwhile.
  public var bytesAfter: Int
  /// The bytes of the replaced files less those of the new ones; negative where the new files are
  /// larger. Entries that were written meanwhile do not count. 0 for a dry run.
  public var bytesFreed: Int
  /// The number of superseded entries that the compaction dropped, deletes among them.
  public var droppedEntries: Int
  /// The number of deletes (tombstones) that the compaction dropped.
  public var droppedTombstones: Int
  /// The number of attachments that were removed because no entry names them.
  public var attachmentsRemoved: Int
  /// The bytes of the removed attachments.
  public var attachmentBytesFreed: Int
  /// The oldest sequence at which a view can be opened from now on.
  public var historyFrom: UInt64
  /// The history that the compaction kept because a peer has yet to acknowledge a change, by peer.
  public var held: [HeldHistory]

  package init(_ report: CompactionReport) {
    segmentsBefore = report.segmentsBefore
    segmentsAfter = report.segmentsAfter
    segmentsRewritten = report.segmentsRewritten
    bytesBefore = report.bytesBefore
    bytesAfter = report.bytesAfter
    bytesFreed = report.bytesFreed
    droppedEntries = report.droppedEntries
    droppedTombstones = report.droppedTombstones
    attachmentsRemoved = report.attachmentsRemoved
    attachmentBytesFreed = report.attachmentBytesFreed
    historyFrom = report.historyFrom
    held = report.held
  }
}

extension Store.Blocking {
  /// Writes an index checkpoint; see ``Store/snapshot()``.
  public func snapshot() throws(TidemarkError) { try store.engine.checkpointer.writeRun() }

  /// Makes every commit so far durable; blocks the calling thread until the sync is done.
  public func flush() throws(TidemarkError) { try store.engine.writer.flush() }

  /// Rewrites the log; see ``Store/compact(dropHistory:dense:dryRun:newKey:waits:)``.
  @discardableResult
  public func compact(
    dropHistory: Bool = false, dense: Bool = false, dryRun: Bool = false,
    newKey: Encryption? = nil, waits: Bool = true
  ) throws(TidemarkError) -> CompactionSummary {
    CompactionSummary(
      try store.engine.compact(
        CompactionOptions(
          dropHistory: dropHistory, dense: dense, dryRun: dryRun, newKey: newKey, waits: waits)))
  }

  /// Copies the store to another directory while it is being written; see ``Store/backup(to:)``.
  public func backup(to path: String) throws(TidemarkError) { try store.engine.backup(to: path) }

  /// Reads the entries that a writer in another process has added; see ``Store/refresh()``.
  public func refresh() throws(TidemarkError) {
    // Any entry that the writer has added, or lost in a crash, changes the cursor.
    let before = store.engine.reader.lastBounds.cursor
    try store.engine.refresh()
    if store.engine.reader.lastBounds.cursor != before { try store.reload() }
  }
}

extension Store {
  /// Lets all participants and watchers read anew what they have in memory: another process may
  /// have written.
  func reload() throws(TidemarkError) {
    // Also when a participant fails: watchers read from the engine, which is up to date.
    defer { hub.tellAll() }
    for participant in participants { try participant.reload() }
  }

  /// Makes every commit so far durable: returns once their bytes are on the disk.
  public func flush() async throws(TidemarkError) {
    try await offPool("tidemark-flush") { (store) throws(TidemarkError) in try store.flush() }
  }

  /// Writes an index checkpoint: stores the memtable as a sorted run, so that the next opening need
  /// not replay the log. The call does nothing while another checkpoint is written. Reads and
  /// writes go on meanwhile.
  public func snapshot() async throws(TidemarkError) {
    try await offPool("tidemark-index") { (store) throws(TidemarkError) in try store.snapshot() }
  }

  /// Rewrites the log: drops the history that the retention does not keep, merges small files,
  /// sorts and recompresses. Reads and writes go on meanwhile. Entries that open views show stay,
  /// and files that would not shrink stay as they are.
  /// - Parameters:
  ///   - dropHistory: drops all superseded history, whatever the retention; for this run.
  ///   - dense: packs for least space; this and single reads get slower.
  ///   - dryRun: changes nothing and says what would be dropped.
  ///   - newKey: its key for new files (id nil) encrypts the store from now on, whether or not the
  ///     store was encrypted before: everything is rewritten with it. The keys that the store was
  ///     opened with are needed until a compaction with the new key has ended without interruption.
  ///   - waits: whether to wait for a compaction that is running before this one begins.
  /// - Throws: `busy` when a compaction is running and this one is not to wait.
  @discardableResult
  public func compact(
    dropHistory: Bool = false, dense: Bool = false, dryRun: Bool = false,
    newKey: Encryption? = nil, waits: Bool = true
  ) async throws(TidemarkError) -> CompactionSummary {
    try await offPool("tidemark-pack") { (store) throws(TidemarkError) in
      try store.compact(
        dropHistory: dropHistory, dense: dense, dryRun: dryRun, newKey: newKey, waits: waits)
    }
  }

  /// Changes whether the store compacts its log in the background, so that a program can put
  /// compaction off while it is busy. With `onRequest` a running background compaction stops; files
  /// that it has not replaced stay as they were.
  /// - Parameter compaction: when the log is compacted from now on.
  public func setCompaction(_ compaction: Compaction) {
    // A store that has no thread for it is switched to `onRequest` in any case.
    engine.autoCompactor.setAutomatic(compaction == .automatic && compactor != nil)
  }

  /// Copies the store to another directory while it is being written. The copy holds everything
  /// that was committed when the call began and is a store of its own.
  /// - Parameter path: where nothing is yet, or an empty directory.
  /// - Throws: `storeExists`, `noSpace` and the like; `damaged` when parts of the store cannot be
  ///   read: the copy is made all the same, without those parts.
  public func backup(to path: String) async throws(TidemarkError) {
    try await offPool("tidemark-copy") { (store) throws(TidemarkError) in
      try store.backup(to: path)
    }
  }

  /// Reads the entries that a writer in another process has added. The call does nothing unless the
  /// store is open read-only. Open views show the same as before.
  public func refresh() async throws(TidemarkError) {
    try await offPool("tidemark-read") { (store) throws(TidemarkError) in try store.refresh() }
  }

  /// Runs a synchronous form on a thread of its own, so that no thread of the tasks' pool blocks;
  /// in a store without threads on the calling one.
  package func offPool<R: Sendable>(
    _ name: String, _ body: @escaping @Sendable (Blocking) throws(TidemarkError) -> R
  ) async throws(TidemarkError) -> R {
    try await onOwnThread(name, if: usesThreads) { [blocking] () throws(TidemarkError) in
      try body(blocking)
    }
  }
}
