public import TidemarkEngine

/// The outcome of a compaction, or, when only asked, what it would be.
public struct CompactionSummary: Sendable, Hashable {
  /// Files of the log before and after.
  public var segmentsBefore: Int
  public var segmentsAfter: Int
  /// How many of the files before were replaced; 0 when there was nothing to gain and the log is as
  /// it was, and when only asked.
  public var segmentsRewritten: Int
  /// Bytes of the log before and after.
  public var bytesBefore: Int
  public var bytesAfter: Int
  /// Bytes by which what was rewritten has shrunk: what was written meanwhile does not count, as it
  /// does for ``bytesAfter``. Below 0 where it grew; 0 when only asked.
  public var bytesFreed: Int
  /// Superseded entries that went, deletes among them.
  public var droppedEntries: Int
  /// Deletes that went.
  public var droppedTombstones: Int
  /// Attachments that went since no entry names them.
  public var attachmentsRemoved: Int
  /// The bytes of these.
  public var attachmentBytesFreed: Int
  /// The oldest sequence of which a view is answered from now on.
  public var historyFrom: UInt64
  /// History that stayed since a peer has yet to acknowledge a change, by peer.
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
  /// Writes an index image of everything committed so far, so that the next opening need not
  /// read the log.
  public func snapshot() throws(TidemarkError) { try store.engine.checkpointer.writeRun() }

  /// Makes everything that was written so far durable.
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

  /// Copies the store to another directory while it is being written; see
  /// ``Store/backup(to:)``.
  public func backup(to path: String) throws(TidemarkError) {
    try store.engine.backup(to: path)
  }

  /// Takes up what a writer in another process has done since; for a store that is open
  /// read-only, else nothing.
  public func refresh() throws(TidemarkError) {
    let before = store.engine.reader.lastBounds.cursor
    try store.engine.refresh()
    if store.engine.reader.lastBounds.cursor != before { try store.reload() }
  }
}

extension Store {
  /// Takes up in memory what another process may have written.
  func reload() throws(TidemarkError) {
    defer { hub.tellAll() }
    for participant in participants { try participant.reload() }
  }

  /// Makes everything that was written so far durable.
  public func flush() async throws(TidemarkError) {
    try await offPool("tidemark-flush") { (store) throws(TidemarkError) in try store.flush() }
  }

  /// Writes an index image of everything committed so far, so that the next opening need not
  /// read the log. Reads and writes go on meanwhile.
  public func snapshot() async throws(TidemarkError) {
    try await offPool("tidemark-image") { (store) throws(TidemarkError) in try store.snapshot() }
  }

  /// Rewrites the log: drops what the retention does not keep, merges small files, sorts and
  /// recompresses. Reads and writes go on meanwhile; what open views need stays, and so does a file
  /// that has nothing to gain.
  /// - Parameters:
  ///   - dropHistory: drops all superseded history, whatever the retention; for this run.
  ///   - dense: packs for least space; this and single reads get slower.
  ///   - dryRun: changes nothing and says what would go.
  ///   - newKey: gives, when asked with nil, the key that the store is encrypted with from now
  ///     on, whether or not it was encrypted before: everything is rewritten with it. The keys
  ///     that the store was opened with must be at hand as long as that takes, and after an
  ///     interruption until it was done again.
  ///   - waits: whether to wait for a compaction that is running before this one begins.
  /// - Throws: `busy` when one is running and this one is not to wait.
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

  /// Whether the log is compacted when nobody asks for it, from now on: a program that is about to
  /// be busy may put that off. A compaction that runs by itself is broken off, and leaves the log
  /// as it was.
  public func setCompaction(_ compaction: Compaction) {
    engine.autoCompactor.setAutomatic(compaction == .automatic && compactor != nil)
  }

  /// Copies the store to another directory while it is being written. The copy holds everything
  /// that was committed when the call began and is a store of its own.
  /// - Parameter path: where nothing is yet, or an empty directory.
  /// - Throws: `storeExists`, `noSpace` and the like; `damaged` when the disk could not read parts
  ///   of the store: the copy is made all the same, without those.
  public func backup(to path: String) async throws(TidemarkError) {
    try await offPool("tidemark-copy") { (store) throws(TidemarkError) in
      try store.backup(to: path)
    }
  }

  /// Takes up what a writer in another process has done since; for a store that is open
  /// read-only, else nothing. Views that are open keep what they show.
  public func refresh() async throws(TidemarkError) {
    try await offPool("tidemark-read") { (store) throws(TidemarkError) in try store.refresh() }
  }

  /// Runs the synchronous form on a thread of its own, or, where threads are not wanted, here.
  package func offPool<R: Sendable>(
    _ name: String, _ body: @escaping @Sendable (Blocking) throws(TidemarkError) -> R
  ) async throws(TidemarkError) -> R {
    try await onOwnThread(name, if: usesThreads) { [blocking] () throws(TidemarkError) in
      try body(blocking)
    }
  }
}
