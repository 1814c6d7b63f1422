/// Every bound of the engine, in one place. Sizes are in bytes unless a name says otherwise.
///
/// A frame is a group of entries in a segment of the log: their heads (all but the values), then
/// blocks of values. History are versions that a newer one of the key has replaced. Raw is before
/// compression. The ballast is a file that keeps disk space for closing and compacting.
package enum Limits {
  /// Longest key; the shortest has one byte.
  package static let keyBytes = 65_535
  /// Longest value in the log; larger ones are attachments.
  package static let valueBytes = 64 << 20
  /// Longest value of a record (an entry of the engine's own): a value and facts about it.
  package static let recordBytes = valueBytes + (64 << 10)
  /// Longest attachment.
  package static let attachmentBytes = 1 << 40
  /// Attachments without an entry are swept after so many bytes of attachments were added or given
  /// up, or half of what the last sweep kept if that is more.
  package static let attachmentBytesBeforeSweep = 64 << 20
  /// A sweep also runs after so many new bytes of cached attachments, or an eighth of what the last
  /// sweep kept if that is more, so that evicted ones take little space.
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
  /// Most bytes of keys and values in the array that a query returns all at once.
  package static let gatheredBytes = 256 << 20
  /// Most operations in one batch.
  package static let batchOperations = 16 << 20

  /// Most items of a collection that a cache mirrors: its switch takes two operations for each.
  package static let collectionItems = 4 << 20
  /// Most bytes of keys and hashes of such a collection.
  package static let collectionBytes = 512 << 20

  /// Up to so many bytes are allocated for a read without asking how long the file is.
  package static let readBytesUnasked = 64 << 10
  /// A value block holds at most this many raw bytes.
  package static let blockBytes = 16 << 10
  /// A value block of history, in a compacted segment, holds at most this many raw bytes.
  package static let historyBlockBytes = 1 << 20
  /// A frame is full once keys, labels, attributes and `entryOverheadBytes` an entry reach this.
  package static let frameHeadsTarget = 32 << 10
  /// The same in a compacted segment, where entries are looked up one by one.
  package static let compactedHeadsTarget = 8 << 10
  /// The same for a frame of history.
  package static let historyHeadsTarget = 64 << 10
  /// A frame is full once its raw values reach this.
  package static let frameValuesTarget = 1 << 20
  /// Most bytes of the keys and attributes of a frame that a decoder accepts.
  package static let frameHeadsBytes = 1 << 20
  /// Largest stored payload of a frame that a decoder accepts.
  package static let framePayloadBytes = 72 << 20
  /// Most entries in one frame.
  package static let frameEntries = 65_536
  /// Most value blocks in one frame.
  package static let frameBlocks = 8_192

  /// A segment is sealed once it reaches this.
  package static let segmentBytes = 64 << 20
  /// Space is allocated to the active segment in steps that begin with this and double, up to an
  /// eighth of the segment, but never less than this.
  package static let firstGrowthBytes = 256 << 10
  /// The largest such step.
  package static let growthBytes = 8 << 20
  /// Free disk space that puts leave on a disk hardly larger than its caches: compaction writes a
  /// new segment before it deletes the old one.
  package static let cacheReserveBytes = 128 << 10
  /// A log of fewer bytes gets no ballast: closing or compacting it takes little space.
  package static let ballastFromLogBytes = 4 << 20
  /// Groups of fewer raw bytes are stored uncompressed, unless compaction writes them.
  package static let compressFromBytes = 64 << 10
  /// Most raw bytes of a batch that are copied for the thread that helps to compress them.
  package static let bytesToPack = 16 << 20
  /// Largest compression dictionary.
  package static let dictionaryBytes = 64 << 10

  /// A background sync starts at this many unsynced bytes.
  package static let unsyncedBytesBeforeSync = 4 << 20
  /// A full segment with more unsynced bytes is synced before sealing, which makes writers wait.
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
  /// Bytes of entries that a compaction sorts in memory at a time; while it gathers the next ones,
  /// the last ones are still in memory to be written.
  package static let compactionUnitBytes = 64 << 20
  /// Segments are merged into one of at most about so many raw bytes.
  package static let compactedSegmentBytes = 3 << 30
  /// Raw bytes that statistics count for an entry besides its key, value and attributes.
  package static let entryOverheadBytes = 16
  /// Most bytes of an encoded entry header, without `entryOverheadBytes`, key and attributes.
  package static let headBytes = 32
  /// A log that holds only caches with bounds is split into about so many segments.
  package static let cacheSegments = 64
  /// Least bytes at which a segment of such a log is sealed.
  package static let leastCacheSegmentBytes = 512 << 10
  /// Least bytes of such a log that one step of its compaction rewrites.
  package static let leastCacheStepBytes = 3 << 20
  /// A compaction in the background rewrites about so many raw bytes a second, and more the more
  /// there is to rewrite.
  package static let compactionBytesPerSecond = 32 << 20
  /// While it pauses, it looks so often whether it must end.
  package static let compactionPauseNanoseconds: UInt64 = 20_000_000
  /// It syncs its output each time that so many bytes were written.
  package static let compactionSyncBytes = 8 << 20
  /// After so long the store looks again whether a compaction pays, though no segment is new; the
  /// delay doubles each time that none did, up to the longest.
  package static let compactionDelayNanoseconds: UInt64 = 60_000_000_000
  package static let longestCompactionDelayNanoseconds: UInt64 = 3_600_000_000_000
  /// Bytes of a value with what the hot cache keeps of its entry behind it: both fit on the stack.
  static let factsBytes = 900
  /// Raw bytes of a value block in the default layout of compacted segments.
  package static let smallBlockBytes = 1 << 10
  /// Raw bytes of a block of history; dense layouts fill `historyBlockBytes`.
  package static let historyTargetBytes = 256 << 10
  /// A dictionary is trained for segments with at least this many bytes of values.
  package static let dictionaryFromBytes = 1 << 20
  /// About how many bytes of values a dictionary is trained on.
  package static let dictionarySampleBytes = 2 << 20
  /// Longest sample that is taken of a value; the sample is the value's beginning.
  package static let dictionarySampleToBytes = 8 << 10
  /// A shorter value gives no sample.
  package static let dictionarySampleFromBytes = 8
  /// Greatest size of a trained dictionary, also not above the values' bytes / `dictionaryShare`.
  package static let trainedDictionaryBytes = 32 << 10
  package static let dictionaryShare = 32
  /// A dense layout tries a dictionary on about so many blocks, and takes it if it saves space.
  package static let layoutSampleBlocks = 64
  /// Bytes that are read at a time by a walk over heads, which skips values.
  package static let replayWindowBytes = 64 << 10
  /// Torn tails kept in quarantine.
  package static let quarantineFiles = 16
  /// Rows of MANIFEST's table of epochs (one for each opening that wrote); the oldest go first.
  package static let epochs = 4_096
  /// A sorted run of fewer keys counts as one of so many in the choice of runs to merge.
  package static let smallRunKeys = 4_096
  /// A run is merged with the next older one unless that one is more than so many times as large.
  package static let runGrowth = 4
  /// At this many runs of the index, a new run takes the place of at least one of them.
  package static let runs = 16
  /// How often a reader opens files again that a writer in another process replaced meanwhile.
  package static let openAttempts = 8
  /// How often a compaction tries to get a run of the whole index that has forgotten the deletes it
  /// drops: one that another thread began before still has them.
  package static let runAttempts = 16
  /// Segments whose files an opening without the lock holds open from the start, since a writer in
  /// another process may remove them.
  package static let openSegments = 512
  /// Closing merges the newest segments, if enough in a row have fewer raw bytes than this.
  package static let smallSegmentBytes = 256 << 10
  /// How many small segments in a row are enough.
  package static let smallSegments = 16
  /// Segments in a store.
  package static let segments = 65_536
  /// Runs of the index listed in MANIFEST.
  package static let manifestRuns = 32
  /// Findings that a verification reports of one segment.
  package static let verifyFindings = 1_000
  /// How often a verification looks again at what a running writer has changed meanwhile.
  package static let verifyAttempts = 4
  /// Most keys of the log that are missing in the index which a verification keeps in memory.
  package static let verifyAbsentKeys = 4 << 20
  /// Entries that a repair puts into one segment.
  package static let repairUnitEntries = 1 << 18
  /// Most keys of lost entries that a repair's report lists for each damaged place.
  package static let repairKeysPerLoss = 100
  /// Most keys of the user's that the files of one store are encrypted with.
  package static let keys = 256
  /// Damage records in MANIFEST.
  package static let damageRecords = 1_024
  /// Largest MANIFEST that is read.
  package static let manifestBytes = 64 << 20
}
