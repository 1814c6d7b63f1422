/// How an engine is opened.
package struct EngineConfiguration: Sendable {
  package enum Access: Sendable, Hashable {
    /// Creates the store when there is none.
    case create
    /// Opens a store that exists.
    case write
    /// Takes no lock and writes nothing; another process may write the store meanwhile.
    case readOnly
  }

  /// What an opening does about damage to acknowledged data.
  package enum Recovery: Sendable, Hashable {
    /// Fails and says where.
    case strict
    /// Reads around the damage; nothing can be written.
    case salvage
  }

  package var access = Access.create
  package var recovery = Recovery.strict
  package var durability = Durability.buffered
  /// How much history the store keeps from now on; nil keeps what the store has.
  package var retention: Retention?
  /// Bytes of all caches together, at least 128 KiB: the hot cache (values by key), and with what
  /// that leaves, decoded objects, and blocks and entry headers of the log.
  package var cacheBytes = 32 << 20
  /// Caches of decoded blocks and entry headers that several engines share; nil for its own.
  package var sharedCaches: LogCaches?
  var hotCacheBytes: Int { sharedCaches == nil ? cacheBytes / 8 * 7 : cacheBytes }
  /// Most bytes of decoded objects: what the hot cache leaves, and always a sixteenth.
  func objectBytes(beside hotBytes: Int) -> Int {
    max(cacheBytes / 16, cacheBytes - cacheBytes / 16 - hotBytes)
  }
  /// A checkpoint of the index (a new sorted run) is due after this much log.
  package var runEveryBytes = 64 << 20
  /// Whether writes do the background work themselves: for simulations, which have one thread.
  package var doesBackgroundWorkInline = false
  /// A segment is sealed once it reaches this.
  package var segmentBytes = Limits.segmentBytes
  /// The disk space that is first allocated ahead of the end of the active segment.
  package var growthBytes = Limits.firstGrowthBytes
  /// A dictionary is trained for compacted segments with at least this many bytes of values.
  package var dictionaryFromBytes = Limits.dictionaryFromBytes
  /// Whether the store starts compactions by itself where they free enough.
  package var compactsByItself = false
  /// How many bytes of entries a compaction sorts in memory at a time.
  package var compactionWindowBytes = Limits.compactionUnitBytes
  /// A ballast file (space to give back on a full disk) is kept once the log has this many bytes.
  package var ballastFromLogBytes = Limits.ballastFromLogBytes
  /// See `Limits.smallRunKeys`.
  package var smallRunKeys = Limits.smallRunKeys
  /// Whether closing writes a checkpoint of the index.
  package var writesRunOnClose = true
  /// The keys of an encrypted store.
  package var encryption: Encryption?
  /// The new keys of a change of keys that was interrupted; they may be given for any store.
  package var newKey: Encryption?
  /// Hears of what happens in the store; called on any thread, also while locks are held.
  package var onEvent: (@Sendable (StoreEvent) -> Void)?

  package init() {}
}

/// The disk, the clocks and the random source of an engine; tests replace them.
package struct EngineEnvironment: Sendable {
  package var fileSystem: any FileSystem
  package var clock: any WallClock
  /// Makes ids, salts and seeds, and the keys of an encrypted store's files.
  package var random: any RandomSource
  /// How many bytes files in a directory may take once the system has purged what it can do
  /// without, as iOS does. It is asked before a compaction that somebody wants is refused, and not
  /// for caches: a cache is no reason to purge anything.
  package var freeBytesAfterPurge: (@Sendable (_ path: String) -> Int?)?

  /// What is not given is the machine's own.
  package init(
    fileSystem: any FileSystem = LocalFileSystem(), clock: any WallClock = SystemClock(),
    random: any RandomSource = SystemRandom()
  ) {
    self.fileSystem = fileSystem
    self.clock = clock
    self.random = random
  }

  /// Sixteen bytes that stay the same until the machine starts again. Where the system does not
  /// tell, as in a strict sandbox, they are new ones each time: then recovery takes the machine for
  /// started again, and believes that bytes which were not synced may be lost.
  func bootIdentifier() throws(FileSystemError) -> [UInt8] {
    do { return try fileSystem.bootIdentifier() } catch {
      let untold = [ErrorNumber.notPermitted, ErrorNumber.accessDenied, ErrorNumber.noEntry]
      guard untold.contains(error.number) else { throw error }
      return randomBytes(16)
    }
  }

  /// `count` unpredictable bytes.
  func randomBytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      var word = random.next()
      for _ in 0..<min(8, count - bytes.count) {
        bytes.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    return bytes
  }
}
