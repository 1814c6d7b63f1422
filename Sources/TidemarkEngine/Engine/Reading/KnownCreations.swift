/// Remembers when keys with long histories were created, so that not every read walks all versions.
/// A key is created by its oldest version since it was last absent. Any thread may call.
final class KnownCreations: Sendable {
  /// What is known of one version; both are hybrid times (milliseconds since 1970 and a counter).
  struct Known: Sendable {
    /// The version's own. After a crash another entry may have its sequence, with another time.
    var commitTime: UInt64
    /// The commit time of the version that created the key.
    var created: UInt64
  }

  /// Only walks of at least so many versions look here, and add what they have found.
  static let fewSteps = 16
  /// With more versions than this all are forgotten.
  static let most = 1_024

  /// By sequence.
  private let versions = Lock<[UInt64: Known]>([:])

  /// A copy of all, so that a walk takes the lock once and not for each version.
  var all: [UInt64: Known] { versions.withLock { $0 } }

  func note(_ sequence: UInt64, _ known: Known) {
    versions.withLock { versions in
      if versions.count >= Self.most { versions = [:] }
      versions[sequence] = known
    }
  }
}
