/// Whether the log is being rewritten, and when the engine should do that by itself.
///
/// One compaction runs at a time. One that nobody asked for gives way to whoever else wants to
/// compact, to close or to suspend.
struct CompactorState {
  private(set) var isRunning = false
  /// Whether the one that runs was asked for by nobody.
  private(set) var isRunningByItself = false
  /// Whether that one should end.
  private(set) var mustStop = false
  /// Whether the engine begins any by itself; may change at any time.
  private(set) var isAutomatic = false
  /// Whether small segments may have come together while nobody had the time to merge them.
  var mergeIsDue = false
  /// The last sealed segment when it was last decided whether one pays.
  private var decidedAt: UInt64?
  /// When that is decided again, though no segment was sealed.
  private var decideAfter: UInt64 = 0
  private var delay = Limits.compactionDelayNanoseconds
  /// So many raw bytes were superseded when a drop was last looked for in vain.
  private var supersededInVain = 0
  /// How many it made by itself, and by how much the log has shrunk.
  private(set) var runs = 0
  private(set) var bytesFreed = 0
  /// Bytes on the disk that the last one would have taken and that were not free; nil when there
  /// was room.
  var neededBytes: Int?
  /// Most bytes that the caches of the store keep, as far as they have a bound.
  var cacheBytes = 0
  /// The last segment when the log was last held against that.
  var lookedAt: UInt64?
  /// How long the log may be where nearly all of its data is that of caches with a bound in bytes;
  /// nil for other logs.
  private(set) var bound: CacheBound?
  /// Whether puts have to leave free disk space for the next compaction: the disk is hardly larger
  /// than the caches, and the log is too short to have a ballast file.
  private(set) var keepsReserve = false
  /// Bytes by which the log is longer than `bound` allows; 0 once a compaction could free no more.
  private var excess = 0

  init(isAutomatic: Bool) { self.isAutomatic = isAutomatic }

  /// The state after the log was read anew: the user's wish and what was done outlive that, not
  /// what was decided about other segments.
  init(goingOnFrom former: CompactorState) {
    isAutomatic = former.isAutomatic
    // One may have begun since.
    isRunning = former.isRunning
    isRunningByItself = former.isRunningByItself
    mustStop = former.mustStop
    runs = former.runs
    bytesFreed = former.bytesFreed
    cacheBytes = former.cacheBytes
    mergeIsDue = true
  }

  /// Claims the one place for who rewrites the log.
  /// - Returns: false when somebody else has it.
  mutating func begin(byItself: Bool = false) -> Bool {
    guard !isRunning else { return false }
    isRunning = true
    isRunningByItself = byItself
    if byItself { mustStop = !isAutomatic }
    return true
  }

  mutating func end() {
    isRunning = false
    isRunningByItself = false
  }

  /// Asks the compaction that runs, if nobody asked for it, to make room.
  /// - Returns: whether there is one.
  mutating func makeRoom() -> Bool {
    if isRunningByItself { mustStop = true }
    return isRunningByItself
  }

  mutating func setAutomatic(_ isOn: Bool) {
    isAutomatic = isOn
    decideAfter = 0
    if !isOn { mustStop = true }
  }

  /// Whether the engine may begin one by itself now.
  var isIdle: Bool { isAutomatic && !isRunning }

  // MARK: Caches

  /// Whether a log of caches is to be compacted, and whether those who write to them are to wait.
  var isOverBound: Bool { excess > 0 }
  var isFarOverBound: Bool { excess > bound?.segmentBytes ?? .max }

  /// Whether a merge may run: its output stands beside its inputs for a while, and both together
  /// must not be longer than `bound` allows.
  var mayMerge: Bool { bound.map { 2 * excess <= -$0.logBytes } ?? true }

  mutating func note(_ bound: CacheBound?, excess: Int, keepsReserve: Bool = false) {
    (self.bound, self.excess, self.keepsReserve) = (bound, excess, keepsReserve)
  }

  /// Takes note that a compaction has given back what it can: it is looked again with the next
  /// segment. While it gains as much as one, those who wait do so for the next compaction.
  mutating func acceptExcess(after freed: Int = 0) {
    if !isFarOverBound || freed < bound?.segmentBytes ?? 0 { excess = 0 }
  }

  // MARK: Decisions

  /// Whether to look if a compaction pays: a segment was sealed, or much time has passed.
  /// - Parameters:
  ///   - last: the last sealed segment.
  ///   - now: in monotonic nanoseconds.
  func isDue(at last: UInt64, _ now: UInt64) -> Bool {
    isIdle && (last != decidedAt || now >= decideAfter)
  }

  /// Puts off the next decision: for longer and longer while the answer stays no.
  mutating func decided(at last: UInt64?, inVain: Bool, _ now: UInt64) {
    let delay = inVain ? self.delay : Limits.compactionDelayNanoseconds
    decidedAt = last
    decideAfter = now &+ delay
    self.delay = min(2 * delay, Limits.longestCompactionDelayNanoseconds)
  }

  /// Whether to walk over all heads for entries that may go: not so soon again for those that could
  /// not go a while ago.
  func mayDrop(of superseded: Int, from least: Int, _ now: UInt64) -> Bool {
    superseded >= supersededInVain + least || superseded < supersededInVain || now >= decideAfter
  }

  mutating func lookedForDrops(among superseded: Int, inVain: Bool) {
    supersededInVain = inVain ? superseded : 0
  }

  /// Counts a compaction that the engine made by itself.
  mutating func count(hasRewritten: Bool, bytesFreed bytes: Int) {
    if hasRewritten { runs += 1 }
    bytesFreed += bytes
  }
}
