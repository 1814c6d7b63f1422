package import TidemarkEngine

/// The records of replication, of the feed's owner and of its clients.
extension RecordType {
  /// How far a feed has come with a replica's batches; the key is the replica.
  package static let feedMark = RecordType(rawValue: 16)
  /// For how long a feed waits for a replica; the key is the replica.
  package static let feedLease = RecordType(rawValue: 17)
  /// How conflicts are decided; the key is the prefix of the keys for which it counts.
  package static let feedPolicy = RecordType(rawValue: 18)
  /// A part of a large value whose change has yet to come; the key is that of ``UploadPart``.
  package static let feedUpload = RecordType(rawValue: 19)
  /// The part of a peer's progress that seldom changes; the key is the peer's name. The rest goes
  /// with the pin.
  package static let peerProgress = RecordType(rawValue: 32)
  /// The batch that is under way to a peer, if it is large; the key is the peer's name.
  package static let peerFormed = RecordType(rawValue: 33)
  /// Where own operations stand in a peer's feed; the key is u32 number and the peer's name.
  package static let peerSettled = RecordType(rawValue: 34)
  /// The version that a feed holds at a key whose value here is another; the key is that key.
  package static let remoteState = RecordType(rawValue: 35)
  /// The facts known of a peer besides its progress; the key is the peer's name.
  package static let peerStatus = RecordType(rawValue: 36)
  /// The peer's name for a key; the key is the peer's name with the alias, the value the key that
  /// it names.
  package static let alias = RecordType(rawValue: 37)
  /// How much of a day's bytes is used with a peer; the key is the peer's name.
  package static let peerBudget = RecordType(rawValue: 38)
  /// Why an own entry is not sent although it is not decided; the key is u64 sequence and the
  /// peer's name.
  package static let peerWaiting = RecordType(rawValue: 39)
  /// A change that lost by policy; the key is the key that it was for.
  package static let loser = RecordType(rawValue: 256)
}
