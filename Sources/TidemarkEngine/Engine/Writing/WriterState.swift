// SAFETY: a WriterState is touched only under the monitor that holds it.

/// The state of ``LogWriter``, under its lock. `durable <= written <= sequence` always holds: an
/// entry is visible first, then with the kernel, then on the disk.
struct WriterState: @unchecked Sendable {
  var manifest: Manifest
  /// The lock on the store's LOCK file; nil once closing has handed it over.
  var lock: (any FileLock)?
  /// The segment that is appended to; nil until the first write of this opening.
  var appender: SegmentAppender?
  /// The sequence of the newest entry, whether or not it is in the log yet.
  var sequence: UInt64
  var commitTime: HybridTime
  /// The highest sequence known to be synced.
  var durable: UInt64
  /// The highest sequence whose bytes are with the kernel.
  var written: UInt64
  var canWrite: Bool
  var isClosed = false
  var isSuspended = false
  /// Set by a write that failed midway: nothing can be written until the store is reopened.
  var poison: TidemarkError?
  /// Whether a caller syncs the active segment, without the lock; there is one at a time.
  var isSyncing = false
  /// Bytes of frames that no sync has covered yet, and since when.
  var unsyncedBytes = 0
  var unsyncedSince: UInt64 = 0
  /// Raw bytes that are in no frame yet (`async`), and since when.
  var stagedBytes = 0
  var stagedSince: UInt64 = 0
  /// `durable` as the header of the last frame in the log says.
  var durableInLog: UInt64 = 0
  /// Bytes of log that were written since the store was opened.
  var loggedBytes = 0
  var limits = SegmentLimits()

  init(_ opened: borrowing Opened) {
    manifest = opened.manifest
    lock = opened.lock
    sequence = opened.lastSequence
    commitTime = HybridTime(opened.latestCommitTime)
    durable = opened.durable
    canWrite = opened.canWrite
    written = opened.lastSequence
    durableInLog = opened.durable
  }

  func checkWritable() throws(TidemarkError) {
    if isClosed { throw TidemarkError(.closed, "the store is closed") }
    if isSuspended { throw .suspended }
    guard canWrite else { throw TidemarkError(.readOnly, "the store is open for reading only") }
    if let poison { throw .poisoned(by: poison) }
  }

  mutating func refuse(isSuspended: Bool) {
    isClosed = !isSuspended
    self.isSuspended = isSuspended
    appender = nil
  }

  /// Through which sequence the log must be synced before more is written.
  var goalForRoom: (sequence: UInt64, epoch: UInt64)? {
    guard unsyncedBytes >= Limits.unsyncedBytesBeforeWait, poison == nil, !isClosed,
      durable < written
    else { return nil }
    return (written, manifest.epoch(of: written))
  }
}
