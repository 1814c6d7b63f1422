/// The list of what belongs to a store: two files hold it, each whole.
///
/// ```
///  0 u64 magic   8 u16 major, u16 minor   12 u32 x 3 feature masks
/// 24 u64 length of the whole   32 u64 XXH64 of the whole with this field zero   40 fields
/// ```
package struct Manifest: Sendable, Hashable {
  /// Counts up with every update; the valid copy with the higher one wins.
  package var generation: UInt64 = 0
  /// The features that a program must know in order to write to the store; readers may ignore it.
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
  /// Views below this sequence are refused; 1 when everything is kept.
  package var historyFrom: UInt64 = 1
  /// The latest of the entries' own times through `historyFrom`, where that is above 1: a date
  /// before it means a state that is no longer kept. Nil when that is not known.
  package var historyTime: Timestamp?
  /// The highest tombstone that compaction dropped.
  package var droppedThrough: UInt64 = 0
  /// The highest cached version that compaction dropped: links may name such that are gone.
  package var evictedThrough: UInt64 = 0
  package var nextSegmentID: UInt64 = 1
  package var nextImageID: UInt64 = 1
  /// Never goes back, even when the entries that carried it are gone.
  package var latestCommitTime: UInt64 = 0
  /// The highest sequence given out before this update, whether or not its entry is still kept.
  package var lastSequence: UInt64 = 0
  /// By first sequence; the last one may be open for appending.
  package var segments: [Segment] = []
  /// Newest last.
  package var images: [Image] = []
  package var damage: [Damage] = []
  /// The user's key that new files are encrypted with; nil when they are not.
  package var keyID: Encryption.KeyID?

  /// Sequences from `firstSequence` on were given out in this epoch.
  package struct Epoch: Sendable, Hashable {
    package var epoch: UInt64
    package var firstSequence: UInt64
    package init(epoch: UInt64, firstSequence: UInt64) {
      self.epoch = epoch
      self.firstSequence = firstSequence
    }
  }

  /// The epoch in which a sequence was given out; 0 for none that is known.
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
    /// Below `firstSequence` while active.
    package var lastSequence: UInt64 = 0
    package var length: Int = 0
    package var entryCount: Int = 0
    package var rawBytes: Int = 0
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

  package struct Image: Sendable, Hashable {
    package var id: UInt64
    package var sequence: UInt64
    package var length: Int
    /// The user's key that the image is encrypted with; nil when it is not.
    package var keyID: Encryption.KeyID?
    package init(id: UInt64, sequence: UInt64, length: Int) {
      self.id = id
      self.sequence = sequence
      self.length = length
    }
    package var fileName: String { StoreLayout.imageName(id: id) }
  }

  /// The damage on record that an entry was lost in.
  func damage(at sequence: UInt64) -> Damage? {
    damage.first { $0.firstSequence <= sequence && sequence <= $0.lastSequence }
  }

  /// Acknowledged data that cannot be read.
  package struct Damage: Sendable, Hashable {
    package enum State: UInt8, Sendable {
      /// Found and not dealt with: a strict open for writing refuses.
      case found = 0
      /// The user said that these sequences are lost; nothing stands there any more.
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
