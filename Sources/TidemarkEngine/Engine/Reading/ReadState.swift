// SAFETY: a ReadState is touched only under the lock that holds it, and cannot be copied out of it;
// the index in it, which is not Sendable, does not leave it.

/// The state that readers look at, under `reading`. It cannot be copied, since a copy would share
/// the index with writers that change it under the lock.
struct ReadState: ~Copyable, @unchecked Sendable {
  var index: Index
  /// By first sequence.
  var segments: [Segment]
  /// Frames whose entries are visible and not yet with the kernel.
  var staged: [FrameBuilder] = []
  /// The next frame of single puts. While they go on it has the memory of one that is written:
  /// to find that anew for each megabyte took up to a fifteenth of a put.
  var nextFrame = FrameBuilder()
  /// The touches among them, by sequence.
  var stagedTouches: [UInt64: Touch] = [:]
  /// A single entry that is visible while its own frame is being written, past `staged`; set while
  /// the writer's lock is held, and for good when the write failed.
  var singleInFlight: (sequence: UInt64, value: ArraySlice<UInt8>)?
  var visible: UInt64
  var durable: UInt64
  var manifest: Manifest
  var usage: SpaceUsage
  var notes = SegmentNotes()
  var nextRun = NextRun()
  var views = OpenViews()
  /// Deletes above this sequence stay, whatever else of the history goes.
  var deletesKeptAbove = UInt64.max
  var isClosed = false
  var isSuspended = false
  /// Counts up when the state was read anew from the disk: others may have written, or dropped.
  var opening = 0
  /// Counts up when compaction has put segments in the place of others.
  var replacements = 0
  /// Below this sequence nothing that the index says is certain, nor that a key is absent: damage
  /// hid which keys were written (salvage), or the index may know entries of a batch that failed,
  /// and then this is the highest number.
  var staleBelow: UInt64 = 0

  init(_ opened: borrowing Opened) {
    index = opened.index
    segments = opened.segments
    visible = opened.lastSequence
    durable = opened.durable
    manifest = opened.manifest
    usage = opened.usage
    staleBelow = opened.staleBelow
  }

  /// The segment that covers a sequence; nil for what compaction dropped with its segment.
  func segment(covering sequence: UInt64) -> Segment? {
    segments.covering(sequence)
  }
}

extension ReadState {
  func checkReadable() throws(TidemarkError) {
    if isClosed { throw TidemarkError(.closed, "the store is closed") }
    if isSuspended { throw .suspended }
  }

  /// Whether an entry that was seen is still part of the history: where entries were lost, their
  /// sequences are given out again in another epoch.
  func hasKept(_ sequence: UInt64, of epoch: UInt64) -> Bool {
    guard sequence <= visible else { return false }
    let now = manifest.epoch(of: sequence)
    // The oldest epochs go from a list that is full.
    return now == epoch || now == 0
  }

  /// Gives up what is not with the kernel.
  mutating func leaveStaged() {
    staged = []
    nextFrame = FrameBuilder()
    stagedTouches = [:]
    singleInFlight = nil
  }

  /// Takes over what was read anew from the disk.
  mutating func takeUp(_ opened: borrowing Opened) {
    leaveStaged()
    opening += 1
    index = opened.index
    nextRun.startOverWithLog()
    segments = opened.segments
    // Somebody else may have given its ids to other segments.
    notes = SegmentNotes()
    visible = opened.lastSequence
    durable = opened.durable
    manifest = opened.manifest
    usage = opened.usage
    staleBelow = opened.staleBelow
  }
}
