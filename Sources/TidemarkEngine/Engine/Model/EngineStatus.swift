/// The facts about a store at one moment.
package struct EngineStatus: Sendable {
  /// Bytes of the log by what they hold.
  package struct Bytes: Sendable, Hashable {
    /// Everything in the log directory.
    package var log = 0
    /// Entries that are their key's newest.
    package var live = 0
    /// Superseded entries that are kept.
    package var history = 0
    /// Superseded entries that a compaction would drop now.
    package var dead = 0
    /// Superseded entries that would be dead if nobody needed them.
    package var pinned = 0
    /// Index images.
    package var index = 0
    /// Set aside for a full disk.
    package var ballast = 0
  }

  /// The compactions that the store makes by itself, since it was opened.
  package struct Compaction: Sendable, Hashable {
    /// Whether it makes any.
    package var isAutomatic: Bool
    /// Whether one is running, whoever has asked for it.
    package var isRunning: Bool
    package var runs: Int
    package var bytesFreed: Int
    /// See ``CompactorState/neededBytes``.
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
    /// How much of the segment that is, from 0 to 1.
    package var supersededShare: Double
  }

  package var storeID: [UInt8]
  package var replicaID: [UInt8]
  package var keys: Int
  package var sequence: UInt64
  package var durableSequence: UInt64
  /// Where the proven part of the log ends.
  package var durableFile: String
  package var durableOffset: Int
  package var bytes: Bytes
  package var segments: [Segment]
  package var images: [Manifest.Image]
  package var historyFrom: UInt64
  package var droppedThrough: UInt64
  package var epochs: [Manifest.Epoch]
  package var retention: Retention
  package var damage: [Manifest.Damage]
  package var isClosedCleanly: Bool
  /// Sequences at which views are open.
  package var pins: [UInt64]
  package var memoryBytes: Int
  package var cacheBytes: Int
  package var cacheHits: UInt64
  package var cacheMisses: UInt64
  package var isPoisoned: Bool
  package var compaction: Compaction
  /// The user's keys in use, that for new files first; empty when nothing is encrypted.
  package var keyIDs: [Encryption.KeyID]
  /// Files that do not have the first of these keys.
  package var filesToRewrite: Int
}
