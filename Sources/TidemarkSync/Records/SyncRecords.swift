package import TidemarkEngine

/// The records of a feed's clients.
extension RecordType {
  /// The part of a peer's progress that seldom changes; the key is the peer's name.
  package static let peerProgress = RecordType(rawValue: 32)
  /// Where own operations stand in a peer's feed; the key is u32 number and the peer's name.
  package static let peerSettled = RecordType(rawValue: 34)
  /// The version that a feed holds at a key whose value here is another; the key is that key.
  package static let remoteState = RecordType(rawValue: 35)
  /// The facts known of a peer besides its progress; the key is the peer's name.
  package static let peerStatus = RecordType(rawValue: 36)
  /// The key that an alias names; the key is the peer's name with the alias.
  package static let alias = RecordType(rawValue: 37)
  /// How much of a day's bytes is used with a peer; the key is the peer's name.
  package static let peerBudget = RecordType(rawValue: 38)
  /// Why an undecided own entry is not sent; the key is u64 sequence and the peer's name.
  package static let peerWaiting = RecordType(rawValue: 39)
}
