public import TidemarkEngine

extension Store {
  /// The facts about a store at one moment.
  public struct Status: Sendable {
    /// Bytes on the disk by what they hold.
    public struct Bytes: Sendable, Hashable {
      /// The whole log.
      public var log: Int
      /// Entries of the log that are their key's newest.
      public var live: Int
      /// Superseded entries of the log that are kept.
      public var history: Int
      /// Superseded entries of the log that a compaction would drop now.
      public var dead: Int
      /// Superseded entries of the log that would be dead if no view needed them.
      public var pinned: Int
      /// Sorted runs of the index.
      public var index: Int
      /// A file that sets space aside, so that a store on a full disk can be closed and compacted.
      /// Where the store's files were copied, the file may have no space allocated yet.
      public var ballast: Int
    }

    /// The end of the part of the log that is known to be on the disk.
    public struct DurablePlace: Sendable, Hashable {
      /// The file, relative to the store's directory.
      public var file: String
      /// The offset in it, in bytes.
      public var offset: Int
      /// The last sequence before it.
      public var sequence: UInt64
    }

    /// One file of the log.
    public struct Segment: Sendable, Hashable {
      /// The file, relative to the store's directory.
      public var file: String
      /// The sequences that it covers; empty in a new one.
      public var sequences: Range<UInt64>
      /// Bytes in use.
      public var bytes: Int
      /// Bytes of entries, before compression, that newer ones have replaced.
      public var supersededBytes: Int
      /// Whether nothing is appended to it any more.
      public var isSealed: Bool
      /// Whether compaction wrote it.
      public var isCompacted: Bool
    }

    /// One file of the index, a sorted run.
    public struct Image: Sendable, Hashable {
      /// The file, relative to the store's directory.
      public var file: String
      /// The last sequence that this run and the older ones cover.
      public var sequence: UInt64
      /// Its length in bytes.
      public var bytes: Int
    }

    /// Acknowledged data that cannot be read.
    public struct Damage: Sendable, Hashable {
      /// The file, relative to the store's directory.
      public var file: String
      /// Where the damage begins in it, in bytes.
      public var offset: Int
      /// The length of the damage, in bytes.
      public var length: Int
      /// The sequences whose entries are lost or may be.
      public var sequences: ClosedRange<UInt64>
      /// The fault that was found, in words.
      public var reason: String
      /// Whether the user said that these sequences are lost.
      public var isAccepted: Bool
    }

    /// How an encrypted store is encrypted.
    public struct Encrypted: Sendable, Hashable {
      /// The keys in use; the first one encrypts new files.
      public var keys: [Encryption.KeyID]
      /// Files of log, index, attachments and hints that the first key does not encrypt: a change
      /// of keys was interrupted, or an attachment was begun before it. A compaction on request
      /// rewrites them.
      public var filesToRewrite: Int
    }

    /// Compactions in the background, since the store was opened.
    public struct BackgroundCompaction: Sendable, Hashable {
      /// Whether the store compacts in the background when it pays.
      public var isAutomatic: Bool
      /// Whether a compaction is running, in the background or on request.
      public var isRunning: Bool
      /// How many compactions in the background have rewritten something.
      public var runs: Int
      /// By how many bytes compactions in the background have made the log smaller.
      public var bytesFreed: Int
      /// Bytes that must be free on the disk for the background compaction that was due last, and
      /// were not; nil when there was room.
      public var neededBytes: Int?
    }

    /// The store's id, 16 bytes; copies share it.
    public var storeID: [UInt8]
    /// The replica's id, 16 bytes: the ``Origin/replica`` of what is written here.
    public var replicaID: [UInt8]
    /// How many keys there are.
    public var keys: Int
    /// The highest sequence that readers see.
    public var sequence: UInt64
    /// The newest epoch, see ``Cursor/epoch``; 0 in a store that was never written.
    public var epoch: UInt64
    /// The entries that are known to be on the disk.
    public var durable: DurablePlace
    /// Space on the disk.
    public var bytes: Bytes
    /// The files of the log, oldest first.
    public var segments: [Segment]
    /// The files of the index, oldest first.
    public var images: [Image]
    /// The oldest sequence at which a view can be opened; 1 when everything is kept.
    public var historyFrom: UInt64
    /// The last sequence up to which superseded entries may have been dropped; 0 for none.
    public var droppedThrough: UInt64
    /// How much superseded history is kept.
    public var retention: Retention
    /// The sequences at which views are open; compaction keeps what these show.
    public var pins: [UInt64]
    /// Damage that was recorded in the store.
    public var damage: [Damage]
    /// Bytes of memory of index and caches, without the hot cache and a shared cache.
    public var memoryBytes: Int
    /// Bytes of memory of the hot cache, which holds values that were read lately.
    public var cacheBytes: Int
    /// How many reads of values the hot cache has answered.
    public var cacheHits: UInt64
    /// How many reads of values the hot cache has not answered.
    public var cacheMisses: UInt64
    /// The share of reads of values that the hot cache has answered; nil where none was read.
    public var cacheHitRatio: Double? {
      let reads = Double(cacheHits) + Double(cacheMisses)
      return reads > 0 ? Double(cacheHits) / reads : nil
    }
    /// How many values were read into the hot cache after opening, see ``Configuration/warmUp``.
    public var cacheWarmed = 0
    /// The keys in use; nil when the store is not encrypted.
    public var encryption: Encrypted?
    /// Compactions in the background.
    public var compaction: BackgroundCompaction
    /// Whether the last writer closed the store and nobody has opened it for writing since.
    public var isClosedCleanly: Bool
    /// Whether writes are refused until the store is reopened, since a write or sync has failed and
    /// how much of it reached the disk is unknown.
    public var isPoisoned: Bool
    /// The error with which the last work in the background ended; nil when it succeeded.
    public var backgroundError: TidemarkError?
  }

  /// History that compactions keep for peers, whatever the retention: deletes, and the versions on
  /// which changes that a peer has yet to acknowledge were made. A listed peer may have none.
  /// - Throws: `closed`, and what reading the log throws.
  public func heldHistory() throws(TidemarkError) -> [HeldHistory] {
    try engine.compactor.historyHeldForPeers()
  }

  /// The facts about the store now.
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
      segments: status.segments.map { Segment($0) }, images: manifest.images.map { Image($0) },
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

extension Store.Status.Image {
  init(_ image: Manifest.Image) {
    self.init(
      file: StoreLayout.indexDirectory + "/" + image.fileName, sequence: image.sequence,
      bytes: image.length)
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
