/// Whether the log is being rewritten, and when the engine should do that by itself. `Compactor`
/// owns the state, under a monitor.
///
/// One compaction runs at a time. An automatic one, which the engine began by itself, gives way to
/// whoever else wants to compact, to close or to suspend.
struct CompactorState {
  private(set) var isRunning = false
  /// Whether the running compaction is an automatic one.
  private(set) var isRunningByItself = false
  /// Whether a running automatic compaction should end, which it asks again and again.
  private(set) var mustStop = false
  /// Whether the engine begins compactions by itself; may change at any time.
  private(set) var isAutomatic = false
  /// Whether small segments may be there that nobody had the time to merge.
  var mergeIsDue = false
  /// The id of the last sealed segment when it was last decided whether a compaction pays.
  private var decidedAt: UInt64?
  /// When to decide again without a new segment, and the delay after the next no; in nanoseconds.
  private var decideAfter: UInt64 = 0
  private var delay = Limits.compactionDelayNanoseconds
  /// Superseded raw bytes of the log when a walk over all headers found too little to drop; else 0.
  private var supersededInVain = 0
  /// How many automatic compactions rewrote something, and by how much the log has shrunk.
  private(set) var runs = 0
  private(set) var bytesFreed = 0
  /// Free bytes that the last automatic compaction needed and did not find; nil when it had room.
  var neededBytes: Int?
  /// Most bytes that the caches of the store keep, as far as they have a bound.
  var cacheBytes = 0
  /// The id of the last segment when the log was last compared with `bound`.
  var lookedAt: UInt64?
  /// How long a log may be that holds nearly only caches with a bound in bytes; nil for others.
  private(set) var bound: CacheBound?
  /// Whether puts have to leave free disk space for the next compaction: the disk is hardly larger
  /// than the caches, and the log too short for a ballast file, which sets space aside.
  private(set) var keepsReserve = false
  /// Bytes of the log above `bound`, negative while it is shorter; 0 once no more could be freed.
  private var excess = 0

  init(isAutomatic: Bool) { self.isAutomatic = isAutomatic }

  /// The state after the log was read anew: the user's wish and the counts stay, but not what was
  /// decided about segments, which may be others now.
  init(goingOnFrom former: CompactorState) {
    isAutomatic = former.isAutomatic
    // A compaction may run already, since the log is writable before this is called.
    isRunning = former.isRunning
    isRunningByItself = former.isRunningByItself
    mustStop = former.mustStop
    runs = former.runs
    bytesFreed = former.bytesFreed
    cacheBytes = former.cacheBytes
    mergeIsDue = true
  }

  /// Claims the right to rewrite the log, which one caller at a time has until `end`.
  /// - Returns: false when somebody else has it.
  mutating func begin(byItself: Bool = false) -> Bool {
    guard !isRunning else { return false }
    isRunning = true
    isRunningByItself = byItself
    // An older wish to stop does not count, unless automatic compactions are switched off.
    if byItself { mustStop = !isAutomatic }
    return true
  }

  mutating func end() {
    isRunning = false
    isRunningByItself = false
  }

  /// Asks a running automatic compaction to end.
  /// - Returns: whether there is one; it ends later, on its own thread.
  mutating func makeRoom() -> Bool {
    if isRunningByItself { mustStop = true }
    return isRunningByItself
  }

  /// Switches automatic compactions on or off; off also asks a running one to end.
  mutating func setAutomatic(_ isOn: Bool) {
    isAutomatic = isOn
    decideAfter = 0
    if !isOn { mustStop = true }
  }

  /// Whether the engine may begin a compaction by itself now.
  var isIdle: Bool { isAutomatic && !isRunning }

  /// Whether a log of caches is to be compacted, and whether writers to caches are to wait.
  var isOverBound: Bool { excess > 0 }
  var isFarOverBound: Bool { excess > bound?.segmentBytes ?? .max }

  /// Whether a merge, whose output stands beside its inputs for a while, keeps the log in `bound`.
  var mayMerge: Bool { bound.map { 2 * excess <= -$0.logBytes } ?? true }

  mutating func note(_ bound: CacheBound?, excess: Int, keepsReserve: Bool = false) {
    (self.bound, self.excess, self.keepsReserve) = (bound, excess, keepsReserve)
  }

  /// A compaction has freed what it can: the log counts as within its bound until the next segment,
  /// unless it is far over it and a whole segment was freed, so that the next may free more.
  mutating func acceptExcess(after freed: Int = 0) {
    if !isFarOverBound || freed < bound?.segmentBytes ?? 0 { excess = 0 }
  }

  /// Whether to look if a compaction pays: a segment was sealed, or much time has passed.
  /// - Parameter now: in monotonic nanoseconds.
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

  /// Whether to read all entry headers for entries that may go: after a walk in vain only once more
  /// is superseded, or less (the log was compacted), or the delay is over.
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
