/// What an engine record says; with the record's key, its name.
///
/// Types below 256 are *listed*: a ``RecordTable`` finds the newest record of each of their names.
/// Of the others there may be as many as there are entries; they are met only by who reads the
/// log.
package struct RecordType: RawRepresentable, Sendable, Hashable {
  package var rawValue: UInt32

  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// How far a store was replayed into another; the key is the other's id.
  package static let replayMark = RecordType(rawValue: 1)
  /// Where the newest records of all names stand; the key is empty.
  package static let checkpoint = RecordType(rawValue: 2)
  /// How far a feed has come with a replica's batches; the key is the replica.
  package static let feedMark = RecordType(rawValue: 16)
  /// For how long a feed waits for a replica; the key is the replica.
  package static let feedLease = RecordType(rawValue: 17)
  /// How conflicts are decided; the key is the prefix of the keys for which it counts.
  package static let feedPolicy = RecordType(rawValue: 18)
  /// How far a peer has come; the key is the peer's name.
  package static let peerProgress = RecordType(rawValue: 32)
  /// The batch that is under way to a peer; the key is the peer's name.
  package static let peerFormed = RecordType(rawValue: 33)
  /// Where own operations stand in a peer's feed; the key is u32 number and the peer's name.
  package static let peerSettled = RecordType(rawValue: 34)
  /// What a feed holds at a key whose value here is another; the key is that key.
  package static let remoteState = RecordType(rawValue: 35)
  /// A change that lost by policy; the key is the key that it was for.
  package static let loser = RecordType(rawValue: 256)

  /// Whether record tables know records of the type.
  package var isListed: Bool { rawValue < 256 && self != .checkpoint }
}

/// The name of a record: of those with the same name only the newest counts.
package struct RecordName: Sendable, Hashable {
  package var type: RecordType
  package var key: [UInt8]

  package init(_ type: RecordType, key: [UInt8]) {
    self.type = type
    self.key = key
  }
}
