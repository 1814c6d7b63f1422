/// What reads of the log keep: decoded blocks and decoded heads, each bounded in bytes.
package struct LogCaches: Sendable {
  /// A place in the log: segment and offset. An older copy of the store may give out a
  /// segment's id once more; the salt tells the two apart.
  package struct Place: Hashable, Sendable {
    package var segmentID: UInt64
    package var salt: UInt32
    package var offset: UInt32
  }

  package let blocks: ClockCache<Place, [UInt8]>
  package let fronts: ClockCache<Place, DecodedFront>

  package init(blockBytes: Int, frontBytes: Int) {
    blocks = ClockCache(limitBytes: blockBytes)
    fronts = ClockCache(limitBytes: frontBytes)
  }

  package var bytes: Int { blocks.bytes + fronts.bytes }
}
