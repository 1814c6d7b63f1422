/// The findings of ``TailRecovery``; all but `remainder` are about the frames before `end`.
package struct RecoveredTail: Sendable {
  /// Where the log ends: behind the last frame that ends a batch.
  package var end = FormatConstants.segmentHeaderBytes
  package var table = LocatorTable()
  /// Chained checksum of the frame headers, which the footer of a sealed segment holds.
  package var chain: UInt64 = 0
  package var entryCount = 0
  package var rawBytes = 0
  package var latestTime: Timestamp?
  package var latestCommitTime: UInt64 = 0
  package var lastSequence: UInt64
  /// The highest sequence that the log itself proves to be synced.
  package var durableSequence: UInt64
  /// The bytes that follow the end.
  package var remainder = Remainder.clean

  package enum Remainder: Sendable {
    /// Nothing but zeros: space that was allocated ahead.
    case clean
    /// A torn tail up to this offset: bytes that nobody was told to be durable.
    case torn(upTo: Int)
    /// Acknowledged data that cannot be read.
    case damage(Damage)
  }

  package struct Damage: Sendable {
    /// Where the damage begins; `nextFrame` is where the next valid frame stands.
    package var offset: Int
    package var nextFrame: Int?
    package var firstSequence: UInt64
    package var lastSequence: UInt64
    package var reason: FormatError
  }

  package init(firstSequence: UInt64) {
    lastSequence = firstSequence - 1
    durableSequence = firstSequence - 1
  }
}
