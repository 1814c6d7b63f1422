extension Engine {
  /// Closes the store: everything committed is made durable, the active segment is sealed, and
  /// MANIFEST says that all is well. Further calls do nothing.
  /// A compaction under way fails with `closed`; what it has rewritten by then stays so.
  /// - Throws: why that failed, `unknownOutcome` also when an earlier write or sync in the
  ///   background had failed and what was written since the last sync may be lost. The store is
  ///   closed in any case.
  package func close() throws(TidemarkError) {
    defer { store.observers.notify() }
    try lifecycle.withLock { (_: inout Void) throws(TidemarkError) in try letGo(isSuspended: false)
    }
  }

  /// Closes the store until it is resumed. Reads and writes fail with `suspended` from then on, and
  /// so does a compaction, a run of the index or a backup under way. Further calls do nothing.
  /// - Throws: `closed`; what closing throws. The store is suspended all the same, and resuming
  ///   opens it as after the process was killed.
  package func suspend() throws(TidemarkError) {
    defer { store.observers.notify() }
    try lifecycle.withLock { (_: inout Void) throws(TidemarkError) in
      if reader.isClosed { throw TidemarkError(.closed, "the store is closed") }
      guard !reader.isSuspended else { return }
      try letGo(isSuspended: true)
    }
  }

  /// Ends writes, reads and background work, in this order, and then releases the store's lock,
  /// whatever has failed. A second call finds nothing to do.
  /// - Parameter isSuspended: whether the store may be resumed.
  private func letGo(isSuspended: Bool) throws(TidemarkError) {
    var failure: TidemarkError?
    autoCompactor.stop()
    // Again where a write has come between the sealing and the refusal; after a failure not.
    repeat {
      do throws(TidemarkError) {
        try writer.ballast.give { () throws(TidemarkError) in try finish(isSuspended) }
      } catch { failure = error }
    } while !writer.refuseWrites(isSuspended: isSuspended, hasFailed: failure != nil)
    if failure == nil || failure?.code == .noSpace { writer.provideBallast() }
    // Without the store's lock nobody may write the ballast file, which sets disk space aside.
    writer.ballast.wait()
    reader.letGo(isSuspended: isSuspended)
    // A compaction or checkpoint on another thread now fails and removes its files. That must end
    // while the lock is held: the next opening may give the same names to files of its own.
    files.stopWriting(beneath: path)
    compactor.wait()
    checkpointer.wait()
    reader.removeAll()
    // A suspended store has no open file. A backup beside a close goes on with the files it has.
    if isSuspended { files.close() } else { writer.packer?.stop() }
    writer.takeLock()?.release()
    if let failure { throw failure }
  }

  /// Makes the log durable and seals it. The closure only makes the next opening faster.
  private func finish(_ isSuspended: Bool) throws(TidemarkError) {
    try writer.finish(isSuspended: isSuspended) { () throws(TidemarkError) in
      if configuration.writesRunOnClose, reader.isAheadOfRuns {
        try checkpointer.writeRun(.brief)
      }
      try compactor.mergeSmallSegments()
    }
  }
}
