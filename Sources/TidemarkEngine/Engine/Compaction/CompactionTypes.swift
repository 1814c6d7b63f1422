/// The wishes for a compaction.
package struct CompactionOptions: Sendable {
  /// Drops all superseded history, whatever the retention.
  package var dropHistory = false
  /// Packs what it rewrites for least space: slower, also for single reads.
  package var dense = false
  /// Waits for a compaction that is running; else throws `busy`.
  package var waits = true
  /// Only says what would be dropped.
  package var dryRun = false
  /// Set where the store compacts by itself.
  var automatic: Automatic?
  /// Encrypts everything anew with the key that this has for new files (`find(nil)`); nil keeps the
  /// present key.
  package var newKey: Encryption?
  /// Asked again and again; the compaction throws `closed` once it says yes, and keeps what it has
  /// rewritten by then.
  package var shouldStop: (@Sendable () -> Bool)?
  /// Says of a record whether a newer one of its name is durable. Without, only those go that have
  /// a newer one among what is rewritten with them.
  package var isSuperseded: (@Sendable (RecordName, _ sequence: UInt64) -> Bool)?

  package init(
    dropHistory: Bool = false, dense: Bool = false, dryRun: Bool = false,
    newKey: Encryption? = nil, waits: Bool = true, shouldStop: (@Sendable () -> Bool)? = nil,
    isSuperseded: (@Sendable (RecordName, _ sequence: UInt64) -> Bool)? = nil
  ) {
    self.isSuperseded = isSuperseded
    self.dropHistory = dropHistory
    self.dense = dense
    self.dryRun = dryRun
    self.newKey = newKey
    self.waits = waits
    self.shouldStop = shouldStop
  }

  /// How a store compacts by itself.
  struct Automatic: Sendable {
    /// The id of the first segment that takes part; all later ones that are sealed do, too.
    var first: UInt64
    /// Keeps it slow; nil for no limit.
    var pace: CompactionPace?
    /// Non-nil: only cached data is dropped, and each step rewrites segments of at most so many
    /// bytes, or one segment: 0 rewrites each alone. Nil: steps are as long as a compacted segment
    /// may be, and if `first` is the oldest segment, all goes that the retention does not keep.
    var stepBytes: Int?
  }

  /// Frames after which a walk asks whether it is to end: single puts have small ones, and who asks
  /// waits for the writer's lock.
  static let framesPerCheck = 64

  /// - Parameter frame: the number of a frame in a walk; only some of them ask.
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
  /// How many of those before were replaced; 0 when there was nothing to gain, and in a dry run.
  package var segmentsRewritten = 0
  /// Bytes of the log.
  package var bytesBefore = 0
  package var bytesAfter = 0
  /// By how much what was rewritten has shrunk, whatever was written meanwhile; nothing in a dry
  /// run.
  package var bytesFreed = 0
  /// Attachments that nothing named any more.
  package var attachmentsRemoved = 0
  package var attachmentBytesFreed = 0
  package var droppedEntries = 0
  package var droppedTombstones = 0
  /// Raw bytes of both.
  var droppedBytes = 0
  /// See `Manifest.historyFrom`: views below this sequence are refused.
  package var historyFrom: UInt64 = 1
  /// History that stayed for peers.
  package var held: [HeldHistory] = []

  package init() {}
}
