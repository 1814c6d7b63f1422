// SAFETY: a WriterState is touched only under the monitor that holds it; who copies it looks at its
// values alone. An Opened is handed over whole, and nobody keeps a part of it.

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
  let files: ClosableFileSystem
  let contexts: ZstdContexts
  /// Compresses blocks of batches on a thread of its own; nil where writers do all work themselves.
  package let packer: BlockPacker?
  let keys: KeyRing
  let caches: LogCaches
  let hotCache: HotCache
  /// Decoded objects, which take turns with decoded blocks in what the hot cache leaves.
  package let objects: ObjectCache
  package let attachments: AttachmentFiles
  let manifests: ManifestStore
  let creations = KnownCreations()
  let derivation = OnceReference<Derivation>()
  let listener = OnceReference<CommitListener>()
  let writer: Monitor<WriterState>
  let reading: Lock<ReadState>
  /// Whether the store is neither closed nor suspended, for reads that take no lock.
  let isOpen = AtomicFlag()
  /// Called after every change of the durable or the visible sequence.
  let observers = Observers()
  /// Held while a reader beside a writer takes up what that one has done.
  let refreshing = Lock(())
  /// Held while the store is closed, suspended or resumed.
  let lifecycle = Lock(())

  init(
    path: String, configuration: EngineConfiguration, environment: EngineEnvironment,
    files: ClosableFileSystem, opened: Opened
  ) {
    self.path = path
    self.configuration = configuration
    self.environment = environment
    self.files = files
    contexts = ZstdContexts()
    packer = configuration.doesBackgroundWorkInline ? nil : BlockPacker(contexts: contexts)
    caches = opened.caches
    keys = opened.keys
    hotCache = HotCache(limitBytes: configuration.hotCacheBytes, seed: opened.manifest.hashSeed)
    objects = ObjectCache(limitBytes: configuration.objectBytes(beside: 0))
    attachments = AttachmentFiles(
      environment.fileSystem, store: path, keys: opened.keys, random: environment.randomBytes)
    manifests = opened.manifests
    writer = Monitor(
      WriterState(
        manifest: opened.manifest, lock: opened.lock, sequence: opened.lastSequence,
        commitTime: HybridTime(opened.latestCommitTime), durable: opened.durable,
        canWrite: opened.canWrite,
        compactor: CompactorState(
          isAutomatic: configuration.compactsByItself && opened.canWrite)))
    reading = Lock(
      ReadState(
        index: opened.index, segments: opened.segments, visible: opened.lastSequence,
        durable: opened.durable, manifest: opened.manifest, usage: opened.usage))
    isOpen.isSet = true
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

/// The state that writers change, under `writer`.
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
  var isClosed = false
  var isSuspended = false
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
  var ballast = BallastState()
  var runs = RunSchedule()
  var compactor: CompactorState

  init(
    manifest: Manifest, lock: (any FileLock)?, sequence: UInt64, commitTime: HybridTime,
    durable: UInt64, canWrite: Bool, compactor: CompactorState
  ) {
    self.manifest = manifest
    self.lock = lock
    self.sequence = sequence
    self.commitTime = commitTime
    self.durable = durable
    self.canWrite = canWrite
    self.compactor = compactor
    written = sequence
    durableInLog = durable
  }
}

/// The parts that opening a store has put together; handed over whole to the engine.
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
