/// Figures of a store, for status displays; not all are of the same moment.
package struct EngineStatus: Sendable {
  /// Bytes on the disk. Those of the log are estimated from each segment's superseded share.
  package struct Bytes: Sendable, Hashable {
    /// All segments of the log.
    package var log = 0
    /// Entries that are their key's newest.
    package var live = 0
    /// Superseded entries that are kept.
    package var history = 0
    /// Superseded entries that a compaction would drop now.
    package var dead = 0
    /// Superseded entries that only open views keep.
    package var pinned = 0
    /// Sorted runs of the index.
    package var index = 0
    /// The ballast file: space to give back on a full disk.
    package var ballast = 0
  }

  /// Compactions since the store was opened: automatic ones, which the store starts by itself.
  package struct Compaction: Sendable, Hashable {
    /// Whether the store starts any.
    package var isAutomatic: Bool
    /// Whether one is running, whoever has asked for it.
    package var isRunning: Bool
    package var runs: Int
    package var bytesFreed: Int
    /// Free disk space that the last one would have needed and did not have; nil if it had enough.
    package var neededBytes: Int?
  }

  package struct Segment: Sendable {
    package var id: UInt64
    package var file: String
    package var firstSequence: UInt64
    package var lastSequence: UInt64
    package var length: Int
    package var isSealed: Bool
    package var isCompacted: Bool
    package var supersededBytes: Int
    /// `supersededBytes` as a share of the segment's raw bytes, from 0 to 1.
    package var supersededShare: Double
  }

  package var manifest: Manifest
  package var keys: Int
  /// The highest sequence that readers see.
  package var sequence: UInt64
  package var durableSequence: UInt64
  /// Where the proven part of the log ends.
  package var durableFile: String
  package var durableOffset: Int
  package var bytes: Bytes
  package var segments: [Segment]
  package var runs: [Manifest.SortedRun] { manifest.runs }
  /// Sequences at which views are open.
  package var pins: [UInt64]
  package var memoryBytes: Int
  package var cacheBytes: Int
  package var cacheHits: UInt64
  package var cacheMisses: UInt64
  package var isPoisoned: Bool
  package var compaction: Compaction
  /// Ids of the encryption keys in use, that for new files first; empty when nothing is encrypted.
  package var keyIDs: [Encryption.KeyID]
  /// Files that are not encrypted with the first of `keyIDs`.
  package var filesToRewrite: Int
}
