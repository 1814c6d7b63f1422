/// When the keys of some versions were created that have long histories, by sequence.
final class KnownCreations: Sendable {
  /// A version's time, which tells it from another one that has its sequence after a crash, and its
  /// key's.
  struct Known: Sendable {
    var commitTime: UInt64
    var created: UInt64
  }

  /// Histories of fewer versions are walked without looking here.
  static let fewSteps = 16
  /// Most versions that are remembered.
  static let most = 1_024

  private let versions = Lock<[UInt64: Known]>([:])

  var all: [UInt64: Known] { versions.withLock { $0 } }

  func note(_ sequence: UInt64, _ known: Known) {
    versions.withLock { versions in
      if versions.count >= Self.most { versions = [:] }
      versions[sequence] = known
    }
  }
}
