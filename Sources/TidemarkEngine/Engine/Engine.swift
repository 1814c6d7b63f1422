// SAFETY: a ReadState is touched only under the lock that holds it, and cannot be copied out of it;
// the index in it, which is not Sendable, does not leave it.

/// The database, synchronous: bytes to state.
///
/// Two locks. `writer` orders everything that changes the log; `reading` guards what readers
/// look at and is held briefly. Whoever needs both takes `writer` first.
@usableFromInline
package final class Engine: Sendable {
  package let path: String
  package let configuration: EngineConfiguration
  /// With `files` as its file system.
  package let environment: EngineEnvironment
  let files: SuspendableFileSystem
  let contexts = ZstdContexts()
  let keys: KeyRing
  let caches: LogCaches
  let hotCache: HotCache
  let manifests: ManifestStore
  let writer: Monitor<WriterState>
  let reading: Lock<ReadState>
  /// Calls made after every change of the durable sequence.
  let observers = Lock(Observers())
  /// Held while a reader beside a writer takes up what that one has done.
  let refreshing = Lock(())
  /// Held while the store is closed, suspended or resumed.
  let lifecycle = Lock(())

  init(
    path: String, configuration: EngineConfiguration, environment: EngineEnvironment,
    files: SuspendableFileSystem, opened: Opened
  ) {
    self.path = path
    self.configuration = configuration
    self.environment = environment
    self.files = files
    caches = opened.caches
    keys = opened.keys
    hotCache = HotCache(limitBytes: configuration.hotCacheBytes, seed: opened.manifest.hashSeed)
    manifests = opened.manifests
    writer = Monitor(
      WriterState(
        manifest: opened.manifest, lock: opened.lock, sequence: opened.lastSequence,
        commitTime: HybridTime(opened.latestCommitTime), durable: opened.durable,
        canWrite: opened.canWrite))
    reading = Lock(
      ReadState(
        index: opened.index, segments: opened.segments, visible: opened.lastSequence,
        durable: opened.durable, manifest: opened.manifest, usage: opened.usage))
    let compactsByItself = configuration.compactsByItself && opened.canWrite
    writer.withLock { $0.automatic.isOn = compactsByItself }
  }

  /// The store's id, 16 bytes.
  package var storeID: [UInt8] { reading.withLock { $0.manifest.storeID } }
  /// The replica's id, 16 bytes.
  package var replicaID: [UInt8] { reading.withLock { $0.manifest.replicaID } }
  /// The highest sequence that readers see.
  package var lastSequence: UInt64 { reading.withLock { $0.visible } }
  /// The highest sequence known to be on the disk.
  package var durableSequence: UInt64 { reading.withLock { $0.durable } }
  /// How many keys there are, as far as the index knows; for estimates, and never refused.
  package var liveKeys: Int { reading.withLock { $0.index.liveKeys } }
}

/// What writers change, under `writer`.
struct WriterState: @unchecked Sendable {
  var manifest: Manifest
  var lock: (any FileLock)?
  /// The segment that is appended to; nil until the first write of this opening.
  var appender: SegmentAppender?
  /// The last sequence given out.
  var sequence: UInt64
  var commitTime: HybridTime
  /// The highest sequence known to be synced.
  var durable: UInt64
  /// The highest sequence whose bytes are with the kernel.
  var written: UInt64
  var canWrite: Bool
  /// See `ReadState.lineage`.
  var lineage = 0
  var isClosed = false
  var isSuspended = false
  /// Whether resuming found another state on the disk and has not taken it up yet.
  var mustOpenAnew = false
  /// Why nothing can be written until the store is reopened.
  var poison: TidemarkError?
  var isSyncing = false
  /// Bytes of frames that no sync has covered yet, and since when.
  var unsyncedBytes = 0
  var unsyncedSince: UInt64 = 0
  /// Raw bytes that are in no frame yet (`async`), and since when.
  var stagedBytes = 0
  var stagedSince: UInt64 = 0
  /// `durable` as the last frame says.
  var durableInLog: UInt64 = 0
  /// Whether runs of the index may have been left to be merged by who has the time.
  var mayHaveUnevenRuns = true
  /// Bytes of log written since the last run.
  var bytesSinceImage = 0
  /// Bytes of log written since the ballast was looked at.
  var bytesSinceBallast = 0
  /// Whether this opening has set aside what the ballast holds.
  var ballastIsProven = false
  /// Whether space is being set aside beside those who write.
  var isProvidingBallast = false
  /// How many are at a step for which the ballast was given up.
  var ballastUsers = 0
  /// Whether small segments may have come together while nobody had the time to merge them.
  var mergeIsDue = false
  var isWritingImage = false
  var isCompacting = false
  var automatic = AutomaticCompaction()

  init(
    manifest: Manifest, lock: (any FileLock)?, sequence: UInt64, commitTime: HybridTime,
    durable: UInt64, canWrite: Bool
  ) {
    self.manifest = manifest
    self.lock = lock
    self.sequence = sequence
    self.commitTime = commitTime
    self.durable = durable
    self.canWrite = canWrite
    written = sequence
    durableInLog = durable
  }
}

/// The state that readers look at, under `reading`. It cannot be copied, since a copy would share
/// the index with writers that change it under the lock.
struct ReadState: ~Copyable, @unchecked Sendable {
  var index: Index
  /// By first sequence.
  var segments: [Segment]
  /// Frames whose entries are visible and not yet with the kernel.
  var staged: [FrameBuilder] = []
  /// What the touches among them say.
  var stagedTouches: [UInt64: Touch] = [:]
  /// An entry that is visible and on its way to the kernel past `staged`; set while the writer's
  /// lock is held, and for good when the write failed.
  var underWay: (sequence: UInt64, value: ArraySlice<UInt8>)?
  var visible: UInt64
  var durable: UInt64
  var manifest: Manifest
  var usage: SpaceUsage
  /// Ids of segments that a compaction has left as they are, since they would get no smaller.
  var leftAlone: Set<UInt64> = []
  /// Ids of sealed segments that hold none of the engine's own records, as far as that is known.
  var recordless: Set<UInt64> = []
  /// What the frozen delta is to become, while there is one.
  var frozen: ImageInfo?
  /// Counts up when the index is made anew: a run begun before must not be taken into use.
  var indexGeneration = 0
  /// Sequences that open views read at, with how many views each.
  var pins: [UInt64: Int] = [:]
  /// Deletes above this sequence stay, whatever else of the history goes.
  var deletesKeptAbove = UInt64.max
  /// Deletes up to here are left out of the index, but for those in `keptDeletes`: compactions
  /// have let them go.
  var forgetsDeletesThrough: UInt64 = 0
  /// Deletes that the last compaction has kept for peers.
  var keptDeletes: Set<UInt64> = []
  var isClosed = false
  var isSuspended = false
  /// Counts up when the state was read anew from the disk: others wrote meanwhile, or dropped.
  var opening = 0
  /// Counts up when the history on the disk lacks entries which readers had seen.
  var lineage = 0
  /// Up to here all lineages are the same.
  var commonThrough = UInt64.max
  /// Below this sequence nothing is certain: damage hid which keys were written (salvage), or the
  /// index may know entries of a batch that failed, and then this is the highest number.
  var staleBelow: UInt64 = 0

  init(
    index: Index, segments: [Segment], visible: UInt64, durable: UInt64, manifest: Manifest,
    usage: SpaceUsage
  ) {
    self.index = index
    self.segments = segments
    self.visible = visible
    self.durable = durable
    self.manifest = manifest
    self.usage = usage
  }

  /// The segment that covers a sequence; nil for what compaction dropped with its segment.
  func segment(covering sequence: UInt64) -> Segment? {
    var low = 0
    var high = segments.count
    while low < high {
      let middle = (low + high) / 2
      if segments[middle].firstSequence <= sequence { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? nil : segments[low - 1]
  }
}

/// Who wants to hear of progress.
struct Observers {
  var next = 0
  var calls: [(token: Int, call: @Sendable () -> Void)] = []
}

/// What opening a store has put together; handed over whole to the engine.
struct Opened: @unchecked Sendable {
  var manifest: Manifest
  var manifests: ManifestStore
  var lock: (any FileLock)?
  var segments: [Segment]
  var index: Index
  var caches: LogCaches
  var keys: KeyRing
  var usage: SpaceUsage
  var lastSequence: UInt64
  var latestCommitTime: UInt64
  var durable: UInt64
  var canWrite: Bool
}
