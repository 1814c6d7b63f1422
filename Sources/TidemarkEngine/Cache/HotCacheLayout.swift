/// How a hot cache divides its memory, in words of eight bytes.
///
/// ```
/// control blocks, one a shard, 128 B each
/// counters of hits and misses, 16 blocks of 128 B; the first four hold a scratch flag each, too
/// scratch buffers for long values, 4
/// shards, each: table | ghost queue | small queue | main queue
/// ```
/// Pages are not touched before they are needed, so that a small store has a small cache.
struct HotCacheLayout: Sendable {
  static let controlWords = 16
  static let stripes = 16
  static let scratchBuffers = 4
  /// The values of a scratch buffer's flag.
  static let scratchUntouched: UInt64 = 0
  static let scratchFree: UInt64 = 1
  static let scratchTaken: UInt64 = 2
  /// Longest value that is copied to a scratch buffer; a longer one is copied to the heap.
  static let scratchBytesMax = 64 << 10
  /// A cache with a smaller limit keeps nothing.
  static let limitBytesMin = 16 << 10
  /// Positions have 30 bits.
  static let shardWordsMax = (1 << 30) - 2
  /// About the bytes of the Swift objects of a cache.
  private static let objectBytes = 2048
  private static let shardBytesMin = 64 << 10
  private static let shardsMax = 16

  let shards: Int
  let scratchWords: Int
  let shardWords: Int
  /// Most slots of a shard's table.
  let slots: Int
  /// Where the parts of a shard begin, counted from its first word.
  let ghost: Int
  let small: Int
  let main: Int
  /// Most words of an entry: as many as the small queue has.
  let entryWords: Int

  /// - Parameter limitBytes: at least `limitBytesMin`.
  init(fitting limitBytes: Int) {
    precondition(limitBytes >= Self.limitBytesMin)
    // All scratch buffers take a 32nd of the limit at most: 32 is 4 buffers times 8 bytes.
    scratchWords = min(limitBytes / 32, Self.scratchBuffers * Self.scratchBytesMax) / 32
    let fixed = Self.objectBytes + (Self.stripes + Self.shardsMax) * Self.controlWords * 8
    let bytes = limitBytes - fixed - scratchWords * 8 * Self.scratchBuffers
    var shards = Self.shardsMax
    while shards > 1, bytes / shards < Self.shardBytesMin { shards /= 2 }
    self.shards = shards
    shardWords = min(bytes / shards / 64 * 8, Self.shardWordsMax)
    // A slot takes 8 bytes and 2 of the ghost queue: together an eighth of the shard.
    slots = shardWords / 10 / 8 * 8
    ghost = slots
    small = slots + slots / 4
    entryWords = shardWords / 8
    main = small + entryWords
  }

  var mainWords: Int { shardWords - main }

  /// All words, and one more: readers load two words of an entry's head, also of a last gap of one.
  var words: Int { firstShard + shards * shardWords + 1 }

  private var firstScratch: Int { (shards + Self.stripes) * Self.controlWords }
  private var firstShard: Int { firstScratch + Self.scratchBuffers * scratchWords }

  /// Whether a shard is so large, 16 MiB, that rounding up to huge pages does not matter.
  var usesHugePages: Bool { shardWords >= 2 << 20 }

  @inline(__always)
  func control(_ shard: Int) -> Int { shard &* Self.controlWords }

  @inline(__always)
  func start(_ shard: Int) -> Int { firstShard &+ shard &* shardWords }

  /// Where a block of counters begins: hits, then misses.
  @inline(__always)
  func stripe(_ number: Int) -> Int { (shards &+ number) &* Self.controlWords }

  func scratchFlag(_ number: Int) -> Int { stripe(number) + 2 }

  func scratch(_ number: Int) -> Int { firstScratch + number * scratchWords }

  /// The bytes that count as used while the cache is empty.
  var fixedBytes: Int { Self.objectBytes + firstScratch * 8 }
}
