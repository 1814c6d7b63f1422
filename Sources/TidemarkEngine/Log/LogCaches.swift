/// The caches of reads of the log: decoded blocks, decoded heads and where slots are, all bounded
/// in bytes. Stores may share them; each has a copy with a number of its own.
package struct LogCaches: Sendable {
  package let blocks: ClockCache<BlockAddress, [UInt8]>
  package let fronts: ClockCache<BlockAddress, DecodedFront>
  /// By segment; out of the bytes for blocks.
  let sequences: ClockCache<BlockAddress, SlotSequences>
  /// The frames of which one head alone was asked last, the newest at the end.
  private let askedOnce: Lock<[BlockAddress]>
  private let spare: Lock<Int>
  /// The store that the addresses are of.
  let store: UInt32
  private let lastStore: Lock<UInt32>

  package init(blockBytes: Int, frontBytes: Int) {
    blocks = ClockCache(limitBytes: blockBytes)
    fronts = ClockCache(limitBytes: frontBytes)
    sequences = ClockCache(limitBytes: blockBytes / 2)
    spare = Lock(blockBytes)
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
    spare = shared.spare
    askedOnce = shared.askedOnce
    lastStore = shared.lastStore
    store = lastStore.withLock { last in
      last = max(1, last &+ 1)
      return last
    }
  }

  /// Most bytes of decoded blocks.
  /// - Parameters:
  ///   - bytes: of all caches together.
  ///   - hotBytes: how many of them the hot cache has.
  static func blockBytes(of bytes: Int, beside hotBytes: Int = 0) -> Int {
    max(64 << 10, bytes - bytes / 16 - hotBytes)
  }

  package var bytes: Int { blocks.bytes + fronts.bytes + sequences.bytes }

  /// Whether other stores keep something here, too.
  var isShared: Bool { store != 0 }

  /// Where a block of a segment stands, and with that of an empty value what is known of the
  /// segment as a whole.
  func address(of record: BlockRecord, in segment: Segment) -> BlockAddress {
    address(ofOffset: record.offset, in: segment)
  }

  func address(ofOffset offset: UInt32, in segment: Segment) -> BlockAddress {
    BlockAddress(segmentID: segment.id, salt: segment.salt, offset: offset, store: store)
  }

  /// Whether nobody who asked for one head of a frame, which is not here, has lately asked for
  /// another of the same frame: then all of it is likely to be of use.
  func isAskedOnce(_ address: BlockAddress) -> Bool {
    askedOnce.withLock { asked in
      guard !asked.contains(address) else { return false }
      if asked.count == Self.mostAsked { asked.removeFirst() }
      asked.append(address)
      return true
    }
  }

  /// As many as the versions of a key, or some threads, are likely to go back and forth between.
  private static let mostAsked = 16

  /// Changes how many bytes decoded blocks and sequences may hold together, where no other store
  /// counts on them.
  func setBlockBytes(_ bytes: Int) {
    if isShared { return }
    spare.withLock { spare in
      spare = bytes
      sequences.setLimit(bytes / 2)
      blocks.setLimit(bytes - sequences.bytes)
    }
  }

  /// Whether a list of sequences fits beside those that there are: who reads goes on to hold one
  /// that is evicted.
  func hasRoom(forSequences bytes: Int) -> Bool {
    spare.withLock { Self.hasRoom(bytes, sequences.bytes, $0) }
  }

  private static func hasRoom(_ bytes: Int, _ taken: Int, _ spare: Int) -> Bool {
    bytes <= spare / 8 && taken + bytes <= spare / 2
  }

  /// Keeps the sequences of a segment's slots, for which blocks make room.
  /// - Returns: false when there is no room.
  func keep(_ list: SlotSequences, for address: BlockAddress, bytes: Int) -> Bool {
    spare.withLock { spare in
      guard Self.hasRoom(bytes, sequences.bytes, spare) else { return false }
      sequences.insert(list, for: address, bytes: bytes)
      blocks.setLimit(spare - sequences.bytes)
      return true
    }
  }

  /// Forgets the sequences of slots: the segments may be gone.
  func removeSequences() {
    spare.withLock { spare in
      sequences.removeAll(of: store)
      blocks.setLimit(spare - sequences.bytes)
    }
  }

  /// Forgets everything of the store.
  func removeAll() {
    blocks.removeAll(of: store)
    fronts.removeAll(of: store)
    removeSequences()
  }
}
