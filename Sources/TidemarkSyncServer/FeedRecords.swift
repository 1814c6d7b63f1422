package import TidemarkEngine

/// The records of a feed's owner.
extension RecordType {
  /// How far a feed has come with a replica's batches; the key is the replica.
  package static let feedMark = RecordType(rawValue: 16)
  /// For how long a feed waits for a replica; the key is the replica.
  package static let feedLease = RecordType(rawValue: 17)
  /// How conflicts are decided; the key is the prefix of the keys for which it counts.
  package static let feedPolicy = RecordType(rawValue: 18)
  /// A part of a large value whose change has yet to come; the key is that of ``UploadPart``.
  package static let feedUpload = RecordType(rawValue: 19)
  /// A change that lost by policy; the key is the key that it was for.
  package static let loser = RecordType(rawValue: 256)
}
