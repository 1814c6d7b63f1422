/// The caches of reads of the log: decoded blocks, decoded heads and where slots are, all bounded
/// in bytes.
package struct LogCaches: Sendable {
  package let blocks: ClockCache<[UInt8]>
  package let fronts: ClockCache<DecodedFront>
  /// By segment; out of the bytes for blocks.
  let sequences: ClockCache<SlotSequences>
  private let spare: Lock<Int>

  package init(blockBytes: Int, frontBytes: Int) {
    blocks = ClockCache(limitBytes: blockBytes)
    fronts = ClockCache(limitBytes: frontBytes)
    sequences = ClockCache(limitBytes: blockBytes / 2)
    spare = Lock(blockBytes)
  }

  package var bytes: Int { blocks.bytes + fronts.bytes + sequences.bytes }

  /// Changes how many bytes decoded blocks and sequences may hold together.
  func setBlockBytes(_ bytes: Int) {
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
      sequences.removeAll()
      blocks.setLimit(spare)
    }
  }

  /// Forgets everything.
  func removeAll() {
    blocks.removeAll()
    fronts.removeAll()
    removeSequences()
  }
}
