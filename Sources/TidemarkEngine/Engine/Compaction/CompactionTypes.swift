/// How a compaction is to be done.
package struct CompactionOptions: Sendable {
  /// Drops all superseded history that views and peers do not need, whatever the retention.
  package var dropHistory = false
  /// Packs what it rewrites for least space: slower, also for single reads.
  package var dense = false
  /// Waits for a compaction that is running; else throws `busy`.
  package var waits = true
  /// Only counts what would be dropped; writes nothing.
  package var dryRun = false
  /// Set where the store compacts by itself.
  var automatic: Automatic?
  /// Encrypts everything anew with the key that this has for new files (`find(nil)`); nil keeps the
  /// present key.
  package var newKey: Encryption?
  /// Asked again and again; once it says yes the compaction throws `closed`. Segments that were
  /// replaced by then stay so.
  package var shouldStop: (@Sendable () -> Bool)?
  /// Says of a record of the engine's whether a newer one of its name is durable: then it is
  /// dropped. Nil drops only records with a newer one in the same group of segments.
  package var isSuperseded: (@Sendable (RecordName, _ sequence: UInt64) -> Bool)?

  package init(
    dropHistory: Bool = false, dense: Bool = false, dryRun: Bool = false,
    newKey: Encryption? = nil, waits: Bool = true, shouldStop: (@Sendable () -> Bool)? = nil,
    isSuperseded: (@Sendable (RecordName, _ sequence: UInt64) -> Bool)? = nil
  ) {
    (self.dropHistory, self.dense, self.dryRun) = (dropHistory, dense, dryRun)
    (self.newKey, self.waits) = (newKey, waits)
    (self.shouldStop, self.isSuperseded) = (shouldStop, isSuperseded)
  }

  /// How a store compacts by itself.
  struct Automatic: Sendable {
    /// The id of the first segment that takes part; all later ones that are sealed do, too. Nil for
    /// the first with cached data that can go when the compaction begins, after it has waited for
    /// another one, which may have replaced segments.
    var first: UInt64?
    /// Keeps it slow; nil for no limit.
    var pace: CompactionPace?
    /// Non-nil: only cached data is dropped, in steps that rewrite so many bytes at most each, or a
    /// single segment: 0 rewrites each alone. Nil: steps are as long as a compacted segment may be,
    /// and if `first` is the oldest segment, all is dropped that the retention does not keep.
    var stepBytes: Int?
  }

  /// A walk over frames asks `shouldStop` once in so many: frames of single puts are small, and the
  /// question takes the writer's lock.
  static let framesPerCheck = 64

  /// Asks whether the compaction is to end.
  /// - Parameter frame: the number of a frame in a walk.
  /// - Throws: `closed` once the compaction is to end.
  func checkStop(at frame: Int = 0) throws(TidemarkError) {
    guard frame % Self.framesPerCheck == 0, let shouldStop, shouldStop() else { return }
    throw TidemarkError(.closed, "the compaction was stopped")
  }
}

/// The outcome of a compaction.
package struct CompactionReport: Sendable, Hashable {
  package var segmentsBefore = 0
  package var segmentsAfter = 0
  /// How many segments were replaced; 0 when there was nothing to gain, and in a dry run.
  package var segmentsRewritten = 0
  /// Bytes of the log.
  package var bytesBefore = 0
  package var bytesAfter = 0
  /// Bytes by which new segments are shorter than those that they replace; 0 in a dry run.
  package var bytesFreed = 0
  /// Attachments that no entry named any more.
  package var attachmentsRemoved = 0
  package var attachmentBytesFreed = 0
  package var droppedEntries = 0
  package var droppedTombstones = 0
  /// Raw bytes of both.
  var droppedBytes = 0
  /// See `Manifest.historyFrom`: views below this sequence are refused.
  package var historyFrom: UInt64 = 1
  /// History that was kept for peers.
  package var held: [HeldHistory] = []

  package init() {}
}
