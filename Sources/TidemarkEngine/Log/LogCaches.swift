/// The caches of reads of the log: decoded blocks and decoded heads, each bounded in bytes.
package struct LogCaches: Sendable {
  package let blocks: ClockCache<[UInt8]>
  package let fronts: ClockCache<DecodedFront>

  package init(blockBytes: Int, frontBytes: Int) {
    blocks = ClockCache(limitBytes: blockBytes)
    fronts = ClockCache(limitBytes: frontBytes)
  }

  package var bytes: Int { blocks.bytes + fronts.bytes }

  /// Forgets everything.
  func removeAll() {
    blocks.removeAll()
    fronts.removeAll()
  }
}
