/// MANIFEST: which files belong to a store, and how far back its history reaches. The disk has two
/// copies, each whole; ``ManifestStore`` updates one after the other.
///
/// Each sorted run of the index has a file of its own. An epoch is one opening for writing.
///
/// ```
///  0 u64 magic   8 u16 major, u16 minor   12 u32 x 3 feature masks
/// 24 u64 length of the whole   32 u64 XXH64 of the whole with this field zero   40 fields
/// ```
package struct Manifest: Sendable, Hashable {
  /// Counts up with every update; of two valid copies the one of the higher generation counts.
  package var generation: UInt64 = 0
  /// The features that a program must know in order to write to the store; readers ignore them.
  package var readOnlyFeatures: UInt32 = 0
  package var storeID: [UInt8]
  package var replicaID: [UInt8]
  /// The machine's boot during which the last writer opened the store.
  package var bootID: [UInt8]
  /// Whether the last writer closed the store: then every segment is sealed and synced.
  package var isClosedCleanly = false
  package var hashSeed: UInt64
  package var epochs: [Epoch] = []
  package var retention = Retention.everything
  /// The oldest state that can be viewed, by its sequence. At 1 all can, the empty state 0 too.
  package var historyFrom: UInt64 = 1
  /// The latest time that an entry at or below `historyFrom` carries: a view as of an earlier date
  /// would need entries that are gone. Nil when unknown, or when `historyFrom` is 1.
  package var historyTime: Timestamp?
  /// The highest sequence of a tombstone that compaction dropped. The log cannot repeat such a
  /// delete, so runs that end below this sequence would bring its key back, and are not used.
  package var droppedThrough: UInt64 = 0
  /// The highest sequence of a version of cached data that compaction dropped: up to here the link
  /// from a version to the one before it may name an entry that is gone.
  package var evictedThrough: UInt64 = 0
  package var nextSegmentID: UInt64 = 1
  package var nextRunID: UInt64 = 1
  /// The highest commit time given out; it never goes back, though its entry may be gone.
  package var latestCommitTime: UInt64 = 0
  /// The highest sequence given out before this update, whether or not its entry is still kept.
  package var lastSequence: UInt64 = 0
  /// By first sequence, without overlap; the last one may be open for appending.
  package var segments: [Segment] = []
  /// The sorted runs of the index, newest last.
  package var runs: [SortedRun] = []
  package var damage: [Damage] = []
  /// The user's key that new files are encrypted with; nil when they are not.
  package var keyID: Encryption.KeyID?

  /// A random number, and from which sequence on entries were given out in this epoch. Sequences
  /// that a crash has lost are given out again: the epoch tells old and new entries apart.
  package struct Epoch: Sendable, Hashable {
    package var epoch: UInt64
    package var firstSequence: UInt64
    package init(epoch: UInt64, firstSequence: UInt64) {
      self.epoch = epoch
      self.firstSequence = firstSequence
    }
  }

  /// The epoch in which a sequence was given out; 0 where its row has been dropped from the list.
  package func epoch(of sequence: UInt64) -> UInt64 {
    if let newest = epochs.last, newest.firstSequence <= sequence { return newest.epoch }
    return epochs.last { $0.firstSequence <= sequence }?.epoch ?? 0
  }

  package struct Segment: Sendable, Hashable {
    package enum State: UInt8, Sendable { case active = 0, sealed = 1 }
    package var id: UInt64
    package var state: State
    package var kind: SegmentHeader.Kind
    package var salt: UInt32
    package var firstSequence: UInt64
    /// One less than `firstSequence` while the segment is active, or sealed without entries.
    package var lastSequence: UInt64 = 0
    // The rest is known once the segment is sealed: 0 or nil while it is active.
    package var length: Int = 0
    package var entryCount: Int = 0
    /// Bytes of keys and values before compression, about.
    package var rawBytes: Int = 0
    /// Checksum over all frame headers, each seeded with the one before.
    package var chain: UInt64 = 0
    package var latestTime: Timestamp?
    /// The user's key that the segment is encrypted with; nil when it is not.
    package var keyID: Encryption.KeyID?

    package init(
      id: UInt64, state: State, kind: SegmentHeader.Kind, salt: UInt32, firstSequence: UInt64
    ) {
      self.id = id
      self.state = state
      self.kind = kind
      self.salt = salt
      self.firstSequence = firstSequence
    }

    package var fileName: String { StoreLayout.segmentName(id: id, firstSequence: firstSequence) }
  }

  package struct SortedRun: Sendable, Hashable {
    package var id: UInt64
    /// The sequence up to which the run covers the log, from the end of the run before it on.
    package var sequence: UInt64
    package var length: Int
    /// The user's key that the sorted run is encrypted with; nil when it is not.
    package var keyID: Encryption.KeyID?
    package init(id: UInt64, sequence: UInt64, length: Int) {
      self.id = id
      self.sequence = sequence
      self.length = length
    }
    package var fileName: String { StoreLayout.sortedRunName(id: id) }
  }

  /// The damage on record in which the entry of a sequence was lost.
  func damage(at sequence: UInt64) -> Damage? {
    damage.first { $0.firstSequence <= sequence && sequence <= $0.lastSequence }
  }

  /// Entries that were acknowledged and cannot be read.
  package struct Damage: Sendable, Hashable {
    package enum State: UInt8, Sendable {
      /// The user has not decided yet: a strict opening for writing is refused.
      case found = 0
      /// The user has accepted the loss: the log holds nothing at these sequences.
      case accepted = 1
    }
    package var state: State
    package var segmentID: UInt64
    package var offset: Int
    package var length: Int
    package var firstSequence: UInt64
    package var lastSequence: UInt64
    package var reason: [UInt8]
    package init(
      state: State, segmentID: UInt64, offset: Int, length: Int, firstSequence: UInt64,
      lastSequence: UInt64, reason: [UInt8]
    ) {
      self.state = state
      self.segmentID = segmentID
      self.offset = offset
      self.length = length
      self.firstSequence = firstSequence
      self.lastSequence = lastSequence
      self.reason = reason
    }
  }

  package init(storeID: [UInt8], replicaID: [UInt8], bootID: [UInt8], hashSeed: UInt64) {
    self.storeID = storeID
    self.replicaID = replicaID
    self.bootID = bootID
    self.hashSeed = hashSeed
  }
}
