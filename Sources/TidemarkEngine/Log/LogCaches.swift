/// The caches of reads of the log, all bounded in bytes: decoded value blocks; decoded fronts (a
/// frame's block table and heads, which are the entries without values); the sequences of slots.
///
/// Stores may share them: the copy of each has a number of its own, which is in all its addresses.
package struct LogCaches: Sendable {
  package let blocks: ClockCache<BlockAddress, [UInt8]>
  package let fronts: ClockCache<BlockAddress, DecodedFront>
  /// By segment the sequence of each slot (an entry's place); takes its bytes from `blocks`.
  let sequences: ClockCache<BlockAddress, SlotSequences>
  /// The frames of which a single head was asked for lately, the newest at the end.
  private let askedOnce: Lock<[BlockAddress]>
  /// Most bytes of `blocks` and `sequences` together. Locked while `sequences` changes, so that the
  /// limit of `blocks` is always what those leave.
  private let budget: Lock<Int>
  /// The number of the store that addresses name; 0 where only one store has these caches.
  let store: UInt32
  private let lastStore: Lock<UInt32>

  package init(blockBytes: Int, frontBytes: Int) {
    blocks = ClockCache(limitBytes: blockBytes)
    fronts = ClockCache(limitBytes: frontBytes)
    sequences = ClockCache(limitBytes: blockBytes / 2)
    budget = Lock(blockBytes)
    askedOnce = Lock([])
    store = 0
    lastStore = Lock(0)
  }

  /// Caches of so many bytes together; at least 128 KiB.
  package init(bytes: Int) {
    self.init(
      blockBytes: Self.blockBytes(of: bytes), frontBytes: min(8 << 20, max(64 << 10, bytes / 16)))
  }

  /// The caches of one more store that shares them.
  init(sharing shared: LogCaches) {
    blocks = shared.blocks
    fronts = shared.fronts
    sequences = shared.sequences
    budget = shared.budget
    askedOnce = shared.askedOnce
    lastStore = shared.lastStore
    store = lastStore.withLock { last in
      last = max(1, last &+ 1)
      return last
    }
  }

  /// Most bytes of decoded blocks and sequences.
  /// - Parameters:
  ///   - bytes: of all caches together.
  ///   - hotBytes: how many of them the hot cache has.
  static func blockBytes(of bytes: Int, beside hotBytes: Int = 0) -> Int {
    max(64 << 10, bytes - bytes / 16 - hotBytes)
  }

  package var bytes: Int { blocks.bytes + fronts.bytes + sequences.bytes }

  /// Whether other stores keep something here, too.
  var isShared: Bool { store != 0 }

  /// The address of a block of a segment. That of `BlockRecord.none`, where no block can stand, is
  /// the address of the segment's list of sequences.
  func address(of record: BlockRecord, in segment: Segment) -> BlockAddress {
    address(ofOffset: record.offset, in: segment)
  }

  func address(ofOffset offset: UInt32, in segment: Segment) -> BlockAddress {
    BlockAddress(segmentID: segment.id, salt: segment.salt, offset: offset, store: store)
  }

  /// Whether no head of this frame, which is not in `fronts`, was asked for lately; notes that one
  /// is now. The first time that head alone is decoded, the second time all, since more may follow.
  func isFirstQuestion(about address: BlockAddress) -> Bool {
    askedOnce.withLock { asked in
      guard !asked.contains(address) else { return false }
      if asked.count == Self.mostAsked { asked.removeFirst() }
      asked.append(address)
      return true
    }
  }

  /// So many frames are noted: some threads, or the versions of a key, may alternate between them.
  private static let mostAsked = 16

  /// Changes how many bytes decoded blocks and sequences may hold together. Does nothing where the
  /// caches are shared: no single store decides for the others.
  func setBlockBytes(_ bytes: Int) {
    if isShared { return }
    budget.withLock { budget in
      budget = bytes
      sequences.setLimit(bytes / 2)
      blocks.setLimit(bytes - sequences.bytes)
    }
  }

  /// Whether a list of sequences fits beside the others: none may be evicted for it, since a reader
  /// may go on to hold that in memory.
  func hasRoom(forSequences bytes: Int) -> Bool {
    budget.withLock { Self.hasRoom(bytes, sequences.bytes, $0) }
  }

  private static func hasRoom(_ bytes: Int, _ taken: Int, _ budget: Int) -> Bool {
    bytes <= budget / 8 && taken + bytes <= budget / 2
  }

  /// Keeps the sequences of a segment's slots; the limit of `blocks` sinks by as many bytes.
  /// - Returns: false when there is no room.
  func keep(_ list: SlotSequences, for address: BlockAddress, bytes: Int) -> Bool {
    budget.withLock { budget in
      guard Self.hasRoom(bytes, sequences.bytes, budget) else { return false }
      sequences.insert(list, for: address, bytes: bytes)
      blocks.setLimit(budget - sequences.bytes)
      return true
    }
  }

  /// Forgets the sequences of the store's slots: a compaction may have replaced their segments.
  func removeSequences() {
    budget.withLock { budget in
      sequences.removeAll(of: store)
      blocks.setLimit(budget - sequences.bytes)
    }
  }

  /// Forgets everything of the store.
  func removeAll() {
    blocks.removeAll(of: store)
    fronts.removeAll(of: store)
    removeSequences()
  }
}
