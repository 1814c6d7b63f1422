public import Tidemark
public import TidemarkEngine

extension SyncHandler {
  /// Estimates what a compaction would free.
  /// - Parameter minimum: when fewer bytes are superseded, nobody asks how many of them may go.
  public func space(from minimum: Int = 0) throws(TidemarkError) -> LogSpace {
    var space = try feed.space(from: minimum)
    // They go at the next compaction, and nothing else might ever make it worth while.
    let time = feed.time(before: Self.millisecondsKept)
    let old = feed.uploads.withLock { $0.untouched(since: time).reduce(0) { $0 + $1.received } }
    if old >= minimum { space.reclaimable = min(space.reclaimable + old, space.log) }
    return space
  }

  /// Rewrites the log without what nobody needs: versions that the store's retention lets go, but
  /// no delete that a replica with a live lease has yet to hear of; and takes away leases that have
  /// run out, and large values whose changes never came. Calls are answered meanwhile.
  ///
  /// A replica that needs what has gone is told `cursorGone`, and compares everything.
  /// - Parameter shouldStop: asked again and again, on the calling thread. Once it says yes, the
  ///   call ends with `closed`; what was rewritten by then stays so.
  @discardableResult
  public func compact(
    unless shouldStop: @escaping @Sendable () -> Bool = { false }
  ) throws(TidemarkError) -> CompactionSummary {
    do throws(TidemarkError) {
      // Replicas that have not called for so long may hold nothing of what is kept.
      try feed.leases.withLock { (leases: inout FeedLeases) throws(TidemarkError) in
        try leases.prepareCompaction(feed)
      }
      try feed.uploads.withLock { (uploads: inout UploadTable) throws(TidemarkError) in
        try dropOldUploads(&uploads)
      }
      feed.arriving.withLock { dropOldAttachments(&$0) }
    } catch {
      // A full disk is what a compaction is to help with.
      guard error.code == .noSpace else { throw error }
    }
    return try feed.compact(unless: shouldStop)
  }
}
