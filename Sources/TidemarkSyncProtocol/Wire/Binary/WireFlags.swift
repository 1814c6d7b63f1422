internal import Tidemark

/// The bits at the head of a change or feed entry: `WireProtocol.md`, sections "Changes" and "Feed
/// entries".
enum WireFlags {
  /// Flag of a change: it deletes.
  static let isDelete = 1
  /// Flags of a change: two bits, how its base is coded.
  static let baseShift = 1
  static let baseAbsent = 0
  static let baseInEpoch = 1
  static let baseOperation = 2
  static let baseInOtherEpoch = 3
  /// Flags of a feed entry: two bits, one less than its kind.
  static let kindMask = 3
  /// Flag of a feed entry: its position is in another epoch than the last one.
  static let otherEpoch = 1 << 2

  static let labels = 1 << 3
  static let hash = 1 << 4
  static let maxAge = 1 << 5
  static let time = 1 << 6
  /// Flag of a change: it is a member of an atomic group.
  static let atomicGroup = 1 << 7
  /// Flag of a feed entry: its replica is not that of the entry before it.
  static let otherReplica = 1 << 7
  /// Optional fields follow.
  static let optionalFields = 1 << 8
  /// Flag of a put: its large value is transferred separately; its hash and length follow.
  static let blob = 1 << 9
  static let all = (1 << 10) - 1

  /// In the tag of a run of verdicts, above the code: the position's epoch follows.
  static let verdictOtherEpoch = 1 << 3
  static let verdictShift = 4

  /// The flags for the parts that a content has.
  static func flags(_ content: SyncContent, _ time: Timestamp?) -> Int {
    (content.labels.isEmpty ? 0 : labels) | (content.hash == nil ? 0 : hash)
      | (content.maxAgeSeconds == nil ? 0 : maxAge) | (time == nil ? 0 : self.time)
      | (content.blob == nil ? 0 : blob) | (content.attachment == nil ? 0 : optionalFields)
  }
}
