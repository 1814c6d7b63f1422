/// Every bound of the engine, in one place. Sizes are in bytes unless a name says otherwise.
package enum Limits {
  /// Longest key; the shortest has one byte.
  package static let keyBytes = 65_535
  /// Longest value in the log; larger ones are attachments.
  package static let valueBytes = 64 << 20
  /// Longest value of a record: what stands beside a value, and what is to be said of it.
  package static let recordBytes = valueBytes + (64 << 10)
  /// Longest attachment.
  package static let attachmentBytes = 1 << 40
  /// Attachments that nothing names any more are looked for once so many bytes have come, or half
  /// as many as there are.
  package static let attachmentBytesBeforeSweep = 64 << 20
  /// The same of what caches have brought, or an eighth of what there is: what they give up is to
  /// take little beside what they keep.
  package static let cachedBytesBeforeSweep = 2 << 20
  /// Most labels on one entry.
  package static let labelsPerEntry = 64
  /// Longest label; the shortest has one byte.
  package static let labelBytes = 255
  /// Longest validator hash.
  package static let hashBytes = 64
  /// Longest alias of a key.
  package static let aliasBytes = 1024
  /// Longest generation token.
  package static let generationBytes = 64
  /// Most `after` edges of one entry.
  package static let afterEdges = 16

  /// Most bytes of keys and values in one batch.
  package static let batchBytes = 512 << 20
  /// Most bytes of keys and values that a query is gathered of into one array.
  package static let gatheredBytes = 256 << 20
  /// Most operations in one batch.
  package static let batchOperations = 16 << 20

  /// Most items of a collection that a cache is to equal: the switch takes two operations for each.
  package static let collectionItems = 4 << 20
  /// Most bytes of their keys and hashes.
  package static let collectionBytes = 512 << 20

  /// So many bytes are set aside for a read without a look at how long the file is.
  package static let readBytesUnasked = 64 << 10
  /// A value block holds at most this many raw bytes.
  package static let blockBytes = 16 << 10
  /// A value block of history, in a compacted segment, holds at most this many raw bytes.
  package static let historyBlockBytes = 1 << 20
  /// A frame is closed once its raw heads reach this.
  package static let frameHeadsTarget = 32 << 10
  /// The same of history, whose values are packed together.
  package static let historyHeadsTarget = 64 << 10
  /// A frame is closed once its raw values reach this.
  package static let frameValuesTarget = 1 << 20
  /// Largest raw size of a frame's heads that a decoder accepts.
  package static let frameHeadsBytes = 1 << 20
  /// Largest stored payload of a frame that a decoder accepts.
  package static let framePayloadBytes = 72 << 20
  /// Most entries in one frame.
  package static let frameEntries = 65_536
  /// Most value blocks in one frame.
  package static let frameBlocks = 8_192

  /// A segment is sealed once it reaches this.
  package static let segmentBytes = 64 << 20
  /// The space of the segment being written grows by this, then by an eighth of what there is.
  package static let firstGrowthBytes = 256 << 10
  /// But by no more than this.
  package static let growthBytes = 8 << 20
  /// Free disk space in bytes that puts keep on a disk hardly larger than its caches: compaction
  /// writes a new segment before it deletes the old one.
  package static let cacheReserveBytes = 128 << 10
  /// A log of fewer bytes gets no ballast: what it takes to close or compact it is little.
  package static let ballastFromLogBytes = 4 << 20
  /// Groups of fewer raw bytes are stored uncompressed, unless compaction writes them.
  package static let compressFromBytes = 64 << 10
  /// A thread helps to compress this many raw bytes of a batch, which are in memory once more.
  package static let bytesToPack = 16 << 20
  /// Largest compression dictionary.
  package static let dictionaryBytes = 64 << 10

  /// A background sync starts at this many unsynced bytes.
  package static let unsyncedBytesBeforeSync = 4 << 20
  /// A full segment with more unsynced bytes is synced before it is sealed, while writers go on.
  package static let unsyncedBytesAtSealing = 1 << 20
  /// Writers wait at this many unsynced bytes.
  package static let unsyncedBytesBeforeWait = 16 << 20
  /// A background sync starts when the oldest unsynced byte is this old.
  package static let unsyncedNanoseconds: UInt64 = 1_000_000_000
  /// `async` writes reach the kernel at this many staged bytes.
  package static let stagedBytes = 1 << 20
  /// `async` writes reach the kernel after this time.
  package static let stagedNanoseconds: UInt64 = 50_000_000

  /// Longest torn tail that is copied into quarantine.
  package static let quarantineBytes = 64 << 20
  /// Bytes of entries that a compaction puts in order in memory at a time, and once more while they
  /// are written.
  package static let compactionUnitBytes = 64 << 20
  /// Segments are merged into one of at most about so many bytes, before they are compressed.
  package static let compactedSegmentBytes = 3 << 30
  /// Raw bytes that statistics count for an entry besides its key, value and attributes.
  package static let entryOverheadBytes = 16
  /// A head takes at most so many bytes more than `entryOverheadBytes`, key and attributes.
  package static let headBytes = 32
  /// A log that is all of caches with bounds is in about so many segments.
  package static let cacheSegments = 64
  /// Such a segment has at least so many bytes.
  package static let leastCacheSegmentBytes = 512 << 10
  /// Such a log is rewritten by as much as one of its segments, and no less than this, at a time.
  package static let leastCacheStepBytes = 3 << 20
  /// A compaction that nobody waits for rewrites about so many raw bytes a second, more when it
  /// lags behind.
  package static let compactionBytesPerSecond = 32 << 20
  /// It looks so often whether it is to end while it pauses.
  package static let compactionPauseNanoseconds: UInt64 = 20_000_000
  /// It syncs what it has written so often.
  package static let compactionSyncBytes = 8 << 20
  /// After so long it is looked again whether one pays, though no segment was sealed; twice as
  /// long after each time that none did, up to the second.
  package static let compactionDelayNanoseconds: UInt64 = 60_000_000_000
  package static let longestCompactionDelayNanoseconds: UInt64 = 3_600_000_000_000
  /// Raw bytes of a value block in the default layout of compacted segments.
  package static let smallBlockBytes = 1 << 10
  /// The same of history, which is packed together; dense layouts fill `historyBlockBytes`.
  package static let historyTargetBytes = 256 << 10
  /// A dictionary is trained for segments with at least this many bytes of values.
  package static let dictionaryFromBytes = 1 << 20
  /// About how many bytes of values a dictionary is trained on.
  package static let dictionarySampleBytes = 2 << 20
  /// So much of a value is a sample.
  package static let dictionarySampleToBytes = 8 << 10
  /// Shorter values are no samples.
  package static let dictionarySampleFromBytes = 8
  /// Greatest size of a trained dictionary, and how many times as long the values must be.
  package static let trainedDictionaryBytes = 32 << 10
  package static let dictionaryShare = 32
  /// On about so many blocks a dictionary is tried before it is taken for least space.
  package static let layoutSampleBlocks = 64
  /// So much is read at a time where heads are read and values are passed over.
  package static let replayWindowBytes = 64 << 10
  /// Torn tails kept in quarantine.
  package static let quarantineFiles = 16
  /// Rows of the epoch table before the oldest are folded.
  package static let epochs = 4_096
  /// A run of fewer keys counts as one of so many, when it is decided what to merge.
  package static let smallRunKeys = 4_096
  /// A run is merged with the next older one unless that is more than so many times as large.
  package static let runGrowth = 4
  /// Runs of an index, before whoever writes one has to merge.
  package static let runs = 16
  /// How often a reader beside a writer looks again when files were replaced under it.
  package static let openAttempts = 8
  /// How many images a compaction writes, or waits for, until one has forgotten what it lets go.
  package static let imageAttempts = 16
  /// Files of the log that an opening without the lock holds open from the start.
  package static let openSegments = 512
  /// Closing merges segments of fewer raw bytes than this, once there are enough of them.
  package static let smallSegmentBytes = 256 << 10
  /// How many small segments in a row are merged.
  package static let smallSegments = 16
  /// Segments in a store.
  package static let segments = 65_536
  /// Runs of the index listed in MANIFEST.
  package static let images = 32
  /// Findings that a verification reports of one segment.
  package static let verifyFindings = 1_000
  /// How often a verification begins again with what a running writer has changed.
  package static let verifyAttempts = 4
  /// Keys without a slot that a comparison of image and log keeps in mind.
  package static let verifyAbsentKeys = 4 << 20
  /// Entries that a repair puts into one segment.
  package static let repairUnitEntries = 1 << 18
  /// Keys of lost entries that a repair names for each damaged place.
  package static let repairKeysPerLoss = 100
  /// Most keys of the user's that the files of one store are encrypted with.
  package static let keys = 256
  /// Damage records in MANIFEST.
  package static let damageRecords = 1_024
  /// Largest MANIFEST that is read.
  package static let manifestBytes = 64 << 20
}
