internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// How far a caller's authorization reaches, given with every call to a ``SyncHandler``.
///
/// ```swift
/// let access = SyncAccess(to: SyncScope(labels: ["user/17"]))
/// let page = try handler.pull(request, access: access)
/// ```
public struct SyncAccess: Sendable, Hashable {
  /// Which entries can be read and written; nil for all. An empty scope is none, not all.
  public var scope: SyncScope?
  /// Whether anything can be written.
  public var canPush: Bool

  /// Everything.
  public static let everything = SyncAccess(to: nil)

  /// An authorization.
  /// - Parameters:
  ///   - scope: which entries can be read and written; nil for all.
  ///   - canPush: whether anything can be written.
  public init(to scope: SyncScope?, canPush: Bool = true) {
    self.scope = scope
    self.canPush = canPush
  }

  /// Stands for the scope, as answers tell it: 0 for everything, and equal for equal scopes,
  /// whichever server says it. An empty scope is another one than everything.
  package var reach: UInt64 { scope.map { max(1, $0.hash(seed: 2)) } ?? 0 }

  /// Whether some labels could bring a key within reach.
  func mayReach(key: [UInt8]) -> Bool {
    guard let scope else { return true }
    return !scope.labels.isEmpty || reaches(key: key, labels: [])
  }

  /// Whether an entry is within.
  package func reaches(key: [UInt8], labels: [[UInt8]]) -> Bool {
    guard let scope else { return true }
    return !scope.isEverything && scope.contains(key: key, labels: labels)
  }
}
