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

  /// Keeps the sequences of a segment's slots, for which blocks make room.
  func keep(_ list: SlotSequences, for address: BlockAddress, bytes: Int) {
    spare.withLock { spare in
      sequences.insert(list, for: address, bytes: bytes)
      blocks.setLimit(spare - sequences.bytes)
    }
  }

  /// Forgets everything.
  func removeAll() {
    blocks.removeAll()
    fronts.removeAll()
    sequences.removeAll()
  }
}
