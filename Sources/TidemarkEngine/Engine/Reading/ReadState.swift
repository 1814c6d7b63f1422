// SAFETY: a ReadState is touched only under the lock that holds it, and cannot be copied out of it;
// the index in it, which is not Sendable, does not leave it.

/// The state that readers see, owned by ``Reader`` and accessed only under its lock, `reading`
/// ("the readers' lock"). It cannot be copied, since a copy would share the index with writers.
/// Writes of entries take the writer's lock first and then this one. A sequence is visible as soon
/// as the index has it, staged when its bytes are still in memory, durable once they are synced.
struct ReadState: ~Copyable, @unchecked Sendable {
  var index: Index
  /// By first sequence.
  var segments: [Segment]
  /// Frames whose entries are visible and not yet written to the file.
  var staged: [FrameBuilder] = []
  /// The next frame of single puts, with the memory of a frame that was written: to allocate that
  /// for each megabyte took up to a fifteenth of a put.
  var nextFrame = FrameBuilder()
  /// By sequence, the touches (entries that renew the validity of a key's value) in `staged`.
  var stagedTouches: [UInt64: Touch] = [:]
  /// An entry that is visible while its frame is being written; it is never in `staged`. Nil when
  /// the writer's lock is free, unless that write failed: then the entry stays readable here.
  var singleInFlight: (sequence: UInt64, value: ArraySlice<UInt8>)?
  /// The newest visible sequence.
  var visible: UInt64
  /// The highest sequence known to be synced.
  var durable: UInt64
  /// MANIFEST as last written, but for `historyFrom`, which is raised before the write.
  var manifest: Manifest
  /// Superseded bytes by segment.
  var usage: SpaceUsage
  /// The ids of sealed segments that a compaction has tried to rewrite in vain: the output was no
  /// smaller, so later compactions pass them over.
  var leftAlone: Set<UInt64> = []
  /// The entries that reference attachments, by id of their sealed segment; segments that have not
  /// been searched for such entries yet are missing.
  var attachments: [UInt64: [AttachmentUse]] = [:]
  var nextRun = NextRun()
  /// How many open views pin each sequence: compaction keeps the state at the least of them and all
  /// that follows.
  var views: [UInt64: Int] = [:]
  /// Compactions keep deletes above this sequence, for those who follow the log; `.max` keeps none.
  var deletesKeptAbove = UInt64.max
  var isClosed = false
  var isSuspended = false
  /// Counts how often the state was read again from the disk: others may have written the store.
  var reopenCount = 0
  /// Counts how often compaction has replaced segments.
  var rewriteCount = 0
  /// What the index says of a key is uncertain if its entry is below this, or if it has none: there
  /// damage may hide a newer one (salvage). `.max`: the index may have entries of a failed batch.
  var uncertainBelow: UInt64 = 0

  init(_ opened: borrowing Opened) {
    index = opened.index
    segments = opened.segments
    visible = opened.lastSequence
    durable = opened.durable
    manifest = opened.manifest
    usage = opened.usage
    uncertainBelow = opened.uncertainBelow
  }

  /// The segment that covers a sequence, whether or not the entry is kept in it.
  func segment(covering sequence: UInt64) -> Segment? { segments.covering(sequence) }

  func checkReadable() throws(TidemarkError) {
    if isClosed { throw TidemarkError(.closed, "the store is closed") }
    if isSuspended { throw .suspended }
  }

  /// Whether an entry that was seen is still part of the log. Where a crash has lost entries, their
  /// sequences are given out again in another epoch (a random number of each opening that writes).
  func hasKept(_ sequence: UInt64, of epoch: UInt64) -> Bool {
    guard sequence <= visible else { return false }
    let now = manifest.epoch(of: sequence)
    // 0: the epoch is one of the oldest, which leave the list when it is full.
    return now == epoch || now == 0
  }

  /// Forgets entries that were never written to the file.
  mutating func dropStaged() {
    staged = []
    nextFrame = FrameBuilder()
    stagedTouches = [:]
    singleInFlight = nil
  }

  /// Replaces the state by what was read again from the disk. Open views stay pinned.
  mutating func takeUp(_ opened: borrowing Opened) {
    dropStaged()
    reopenCount += 1
    index = opened.index
    nextRun.logWasReread()
    segments = opened.segments
    // Another process may have given the ids to other segments.
    (leftAlone, attachments) = ([], [:])
    visible = opened.lastSequence
    durable = opened.durable
    manifest = opened.manifest
    usage = opened.usage
    uncertainBelow = opened.uncertainBelow
  }
}
