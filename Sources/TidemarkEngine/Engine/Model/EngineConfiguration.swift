/// How an engine is opened.
package struct EngineConfiguration: Sendable {
  package enum Access: Sendable, Hashable {
    /// Creates the store when there is none.
    case create
    /// Opens a store that exists.
    case write
    /// Takes no lock and writes nothing.
    case readOnly
  }

  /// The reaction of an opening to damaged data that was acknowledged.
  package enum Recovery: Sendable, Hashable {
    /// Fails and says where.
    case strict
    /// Reads around the damage; nothing can be written.
    case salvage
  }

  package var access = Access.create
  package var recovery = Recovery.strict
  package var durability = Durability.buffered
  /// Given when the store is created or changed; nil keeps what the store has.
  package var retention: Retention?
  /// Bytes of all caches together, however small they are but for 128 KiB: values that were read
  /// (the hot cache), and what the hot cache leaves, for decoded objects, blocks and heads.
  package var cacheBytes = 32 << 20
  /// The caches of decoded blocks and heads that several engines share, in the place of its own.
  package var sharedCaches: LogCaches?
  var hotCacheBytes: Int { sharedCaches == nil ? cacheBytes / 8 * 7 : cacheBytes }
  /// Most bytes of decoded objects: what the hot cache leaves, and always a little.
  func objectBytes(beside hotBytes: Int) -> Int {
    max(cacheBytes / 16, cacheBytes - cacheBytes / 16 - hotBytes)
  }
  /// A new run of the index is due when this much log has come after the last one.
  package var imageEveryBytes = 64 << 20
  /// Whether the work that nobody waits for (background syncs, images) is done by the caller
  /// of a write, at once: for simulations, which have one thread.
  package var doesBackgroundWorkInline = false
  /// A segment is sealed once it reaches this.
  package var segmentBytes = Limits.segmentBytes
  /// By how much the space of the segment being written grows at first.
  package var growthBytes = Limits.firstGrowthBytes
  /// A dictionary is trained for compacted segments with at least this many bytes of values.
  package var dictionaryFromBytes = Limits.dictionaryFromBytes
  /// Whether the store compacts by itself what pays.
  package var compactsByItself = false
  /// So many bytes of entries a compaction puts in order in memory at a time.
  package var compactionWindowBytes = Limits.compactionUnitBytes
  /// Space is set aside for a full disk once the log has this many bytes.
  package var ballastFromLogBytes = Limits.ballastFromLogBytes
  /// See `Limits.smallRunKeys`.
  package var smallRunKeys = Limits.smallRunKeys
  /// Whether closing writes a run of the index.
  package var writesImageOnClose = true
  /// The keys of an encrypted store.
  package var encryption: Encryption?
  /// Keys that the store is about to be encrypted with: for reading what an interrupted change
  /// of keys has done already. Unlike `encryption` they may be given for any store.
  package var newKey: Encryption?

  package init() {}
}

/// The disk, the clocks and the chance that an engine runs on; tests put their own in.
package struct EngineEnvironment: Sendable {
  package var fileSystem: any FileSystem
  package var clock: any WallClock
  /// Makes ids, salts and seeds, and the keys of an encrypted store's files.
  package var random: any RandomSource

  /// The machine's own, or what is given.
  package init(
    fileSystem: any FileSystem = LocalFileSystem(), clock: any WallClock = SystemClock(),
    random: any RandomSource = SystemRandom()
  ) {
    self.fileSystem = fileSystem
    self.clock = clock
    self.random = random
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
