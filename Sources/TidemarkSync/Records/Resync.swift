internal import TidemarkEngine

/// The work that puts things right with a peer before anything else goes on; a part of its
/// progress.
///
/// One comparison by digest serves all cases, which are in `HowReplicationWorks.md`, "The resync".
/// They differ in whether entries that the feed has lost are taken up first (`adopts`): not where a
/// lease has expired or a cursor was lost. And they differ in where the feed is read on afterwards:
/// a new feed from its beginning, a restored one from the last common position, and others from the
/// compared position, unless the cursor stays for own operations (`keepsCursor`).
package struct Resync: Sendable, Hashable {
  /// The decision about keys that the feed has lost in great number.
  package enum Purge: UInt8, Sendable, Hashable {
    /// Up to a bound they go here, too; above it the user decides.
    case bounded = 0
    /// The user must decide.
    case undecided = 1
    /// The user wants them to go.
    case allowed = 2
    /// The user wants them back in the feed.
    case refused = 3
  }

  /// Whether entries are to be sought first that came from the feed and stand in it no more.
  package var adopts = false
  /// Whether everything is to be compared by digest.
  package var compares = false
  /// Entries of the feed up to here were taken from it before.
  package var seenThrough: UInt64 = 0
  /// Whether the feed is read from where the cursor stands all the same, for own operations that
  /// it may have again.
  package var keepsCursor = false
  /// Whether keys that the peer tells nothing of go here without a question: the authorization has
  /// changed, so that they may lie outside of it. They count as out of scope, not as deleted.
  package private(set) var evicts = false
  package var purge = Purge.bounded
  /// How many keys there are that the user must decide on.
  package var lostKeys: UInt64 = 0

  /// Lets keys go that the peer tells nothing of, also those that the user was asked about.
  mutating func evict() {
    evicts = true
    purge = .bounded
    lostKeys = 0
  }

  func encode(into writer: inout ByteWriter) {
    writer.u8(
      (adopts ? 1 : 0) | (compares ? 2 : 0) | (keepsCursor ? 4 : 0) | (evicts ? 8 : 0))
    writer.u8(purge.rawValue)
    writer.varint(seenThrough)
    writer.varint(lostKeys)
  }
}

extension Resync {
  init(from reader: inout ByteReader) throws(FormatError) {
    let flags = try reader.u8()
    adopts = flags & 1 != 0
    compares = flags & 2 != 0
    keepsCursor = flags & 4 != 0
    evicts = flags & 8 != 0
    guard let purge = Purge(rawValue: try reader.u8()) else {
      throw FormatError("unknown decision on lost keys")
    }
    self.purge = purge
    seenThrough = try reader.varint()
    lostKeys = try reader.varint()
  }
}
