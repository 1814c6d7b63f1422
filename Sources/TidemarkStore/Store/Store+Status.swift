public import TidemarkEngine

extension Store {
  /// The facts about a store at one moment: its sizes, sequences, files, damage and cache counts.
  public struct Status: Sendable {
    /// The bytes that a store takes on the disk, by their use.
    public struct Bytes: Sendable, Hashable {
      /// The bytes of the whole log.
      public var log: Int
      /// The bytes of log entries that are the newest of their key.
      public var live: Int
      /// The bytes of superseded log entries that the retention keeps.
      public var history: Int
      /// The bytes of superseded log entries that a compaction would drop now.
      public var dead: Int
      /// The bytes of superseded log entries that only an open view keeps.
      public var pinned: Int
      /// The bytes of the index's sorted runs.
      public var index: Int
      /// The bytes of a file that reserves space, so that a store on a full disk can be closed and
      /// compacted. In a copied store the file may have no space allocated yet.
      public var ballast: Int
    }

    /// The end of the part of the log that is known to be on the disk.
    public struct DurablePlace: Sendable, Hashable {
      /// The log file in which the durable part ends, relative to the store's directory.
      public var file: String
      /// The offset in ``file``, in bytes, at which the durable part ends.
      public var offset: Int
      /// The sequence of the last entry that is known to be on the disk. A power cut can lose only
      /// later entries.
      public var sequence: UInt64
    }

    /// One file of the log (a segment) with its sizes and state.
    public struct Segment: Sendable, Hashable {
      /// The segment's file, relative to the store's directory.
      public var file: String
      /// The sequences that the segment covers; empty in a new segment.
      public var sequences: Range<UInt64>
      /// The bytes of the segment that are in use.
      public var bytes: Int
      /// The bytes of the segment's entries, before compression, that newer entries of their key
      /// have replaced.
      public var supersededBytes: Int
      /// Whether the segment is complete, so that the store appends nothing to it any more.
      public var isSealed: Bool
      /// Whether a compaction wrote the segment.
      public var isCompacted: Bool
    }

    /// One file of the index: a sorted run.
    public struct SortedRun: Sendable, Hashable {
      /// The run's file, relative to the store's directory.
      public var file: String
      /// The last sequence that this run and the older runs cover.
      public var sequence: UInt64
      /// The length of the run's file, in bytes.
      public var bytes: Int
    }

    /// A damaged part of the log: acknowledged entries that the store cannot read.
    public struct Damage: Sendable, Hashable {
      /// The damaged file, relative to the store's directory.
      public var file: String
      /// The offset in ``file``, in bytes, at which the damage begins.
      public var offset: Int
      /// The length of the damaged part, in bytes.
      public var length: Int
      /// The sequences whose entries are lost or may be.
      public var sequences: ClosedRange<UInt64>
      /// A description of the fault, for people.
      public var reason: String
      /// Whether the user has accepted that these sequences are lost.
      public var isAccepted: Bool
    }

    /// The keys of an encrypted store, and the work that a change of keys has left.
    public struct Encrypted: Sendable, Hashable {
      /// The ids of the keys in use; the first key encrypts new files.
      public var keys: [Encryption.KeyID]
      /// The number of files (log, index, attachments, hints) that are not yet encrypted with the
      /// newest key, the first of ``keys``. They remain when a change of keys was interrupted, or
      /// when an attachment was begun before it. A compaction on request rewrites them.
      public var filesToRewrite: Int
    }

    /// The background compactions of a store since it was opened.
    public struct BackgroundCompaction: Sendable, Hashable {
      /// Whether the store compacts in the background by itself; see ``Store/Compaction``.
      public var isAutomatic: Bool
      /// Whether a compaction is running, in the background or on request.
      public var isRunning: Bool
      /// The number of background compactions that have rewritten files.
      public var runs: Int
      /// The bytes by which background compactions have made the log smaller.
      public var bytesFreed: Int
      /// The free bytes on the disk that the last due background compaction needed and did not
      /// find; nil when there was room.
      public var neededBytes: Int?
    }

    /// The store's id, 16 bytes. A copy of the store has the same id.
    public var storeID: [UInt8]
    /// The id of this replica, 16 bytes: the ``EntryOrigin/replica`` of entries that this store
    /// writes.
    public var replicaID: [UInt8]
    /// The number of keys that have a value.
    public var keys: Int
    /// The sequence of the newest entry that readers see.
    public var sequence: UInt64
    /// The newest epoch, a random number that tells lost entries from new ones; see
    /// ``EntryCursor/epoch``. 0 in a store that was never written.
    public var epoch: UInt64
    /// The end of the durable part of the log: entries before it survive a power cut.
    public var durable: DurablePlace
    /// The bytes that the store takes on the disk, by their use.
    public var bytes: Bytes
    /// The files of the log, oldest first.
    public var segments: [Segment]
    /// The files of the index, oldest first.
    public var runs: [SortedRun]
    /// The oldest sequence at which a view can be opened; 1 when everything is kept.
    public var historyFrom: UInt64
    /// The last sequence up to which superseded entries may have been dropped; 0 for none.
    public var droppedThrough: UInt64
    /// The superseded history that the store keeps.
    public var retention: Retention
    /// The sequences of the open views; compaction keeps the entries that they show.
    public var pins: [UInt64]
    /// The damage that the store has recorded; empty in a sound store.
    public var damage: [Damage]
    /// The bytes of memory that index and caches use, without the hot cache and a shared cache.
    public var memoryBytes: Int
    /// The bytes of memory that the hot cache uses. It holds values that were read lately.
    public var cacheBytes: Int
    /// The number of value reads that the hot cache has answered.
    public var cacheHits: UInt64
    /// The number of value reads that the hot cache could not answer, so that they read the log.
    public var cacheMisses: UInt64
    /// The share of value reads that the hot cache has answered, 0 to 1; nil before the first read.
    public var cacheHitRatio: Double? {
      let reads = Double(cacheHits) + Double(cacheMisses)
      return reads > 0 ? Double(cacheHits) / reads : nil
    }
    /// The number of values that the store read into the hot cache after opening; see
    /// ``Configuration/warmUp``.
    public var cacheWarmed = 0
    /// The keys of the store; nil when the store is not encrypted.
    public var encryption: Encrypted?
    /// The background compactions since the store was opened.
    public var compaction: BackgroundCompaction
    /// Whether the last writer closed the store, and nobody has opened it for writing since.
    public var isClosedCleanly: Bool
    /// Whether writes are refused until the store is reopened, since a write or sync has failed and
    /// how much of it reached the disk is unknown.
    public var isPoisoned: Bool
    /// The error of the last background work; nil when that work succeeded.
    public var backgroundError: TidemarkError?
  }

  /// Lists the history that compactions keep for peers, whatever the retention: deletes, and the
  /// base versions of changes that a peer has yet to acknowledge. A listed peer may need none.
  /// - Throws: `closed`, and what reading the log throws.
  public func heldHistory() throws(TidemarkError) -> [HeldHistory] {
    try engine.compactor.historyHeldForPeers()
  }

  /// The facts about the store now: sizes, sequences, files, damage and cache counts.
  /// - Throws: `closed`, `inputOutput`.
  public var status: Status {
    get throws(TidemarkError) {
      var status = Status(
        try engine.status(), backgroundError: background?.lastError ?? compactor?.lastError)
      status.cacheWarmed = caches.warmed
      return status
    }
  }
}

extension Store.Status {
  init(_ status: EngineStatus, backgroundError: TidemarkError?) {
    let manifest = status.manifest
    let files = Dictionary(
      status.segments.map { ($0.id, $0.file) }, uniquingKeysWith: { first, _ in first })
    self.init(
      storeID: manifest.storeID, replicaID: manifest.replicaID, keys: status.keys,
      sequence: status.sequence, epoch: manifest.epochs.last?.epoch ?? 0,
      durable: DurablePlace(
        file: status.durableFile, offset: status.durableOffset, sequence: status.durableSequence),
      bytes: Bytes(
        log: status.bytes.log, live: status.bytes.live, history: status.bytes.history,
        dead: status.bytes.dead, pinned: status.bytes.pinned, index: status.bytes.index,
        ballast: status.bytes.ballast),
      segments: status.segments.map { Segment($0) }, runs: manifest.runs.map { SortedRun($0) },
      historyFrom: manifest.historyFrom, droppedThrough: manifest.droppedThrough,
      retention: manifest.retention, pins: status.pins,
      damage: manifest.damage.map { Damage($0, file: files[$0.segmentID]) },
      memoryBytes: status.memoryBytes, cacheBytes: status.cacheBytes, cacheHits: status.cacheHits,
      cacheMisses: status.cacheMisses,
      encryption: status.keyIDs.isEmpty
        ? nil : Encrypted(keys: status.keyIDs, filesToRewrite: status.filesToRewrite),
      compaction: BackgroundCompaction(
        isAutomatic: status.compaction.isAutomatic, isRunning: status.compaction.isRunning,
        runs: status.compaction.runs, bytesFreed: status.compaction.bytesFreed,
        neededBytes: status.compaction.neededBytes),
      isClosedCleanly: manifest.isClosedCleanly, isPoisoned: status.isPoisoned,
      backgroundError: backgroundError)
  }
}

extension Store.Status.Segment {
  init(_ segment: EngineStatus.Segment) {
    self.init(
      file: segment.file,
      sequences: segment.firstSequence..<max(segment.firstSequence, segment.lastSequence + 1),
      bytes: segment.length, supersededBytes: segment.supersededBytes,
      isSealed: segment.isSealed, isCompacted: segment.isCompacted)
  }
}

extension Store.Status.SortedRun {
  init(_ run: Manifest.SortedRun) {
    self.init(
      file: StoreLayout.indexDirectory + "/" + run.fileName, sequence: run.sequence,
      bytes: run.length)
  }
}

extension Store.Status.Damage {
  init(_ damage: Manifest.Damage, file: String?) {
    self.init(
      file: file ?? StoreLayout.logDirectory, offset: damage.offset, length: damage.length,
      sequences: damage.firstSequence...max(damage.firstSequence, damage.lastSequence),
      reason: String(decoding: damage.reason, as: UTF8.self),
      isAccepted: damage.state == .accepted)
  }
}
