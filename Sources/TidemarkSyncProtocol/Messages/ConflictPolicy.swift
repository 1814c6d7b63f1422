public import Tidemark

/// How a conflict is decided: what becomes of a change whose base is not what its key holds now.
public enum ConflictPolicy: UInt8, Sendable, Hashable, CaseIterable {
  /// The change is not applied, and its writer must resolve the conflict. Nothing is lost silently.
  case detect = 1
  /// The later of the two wins, by the times at which they were committed on their devices; a time
  /// after the server received the change counts as that. The other is kept in the server's log.
  case lastWriterWins = 2
}

/// The policy for the keys that begin with a prefix.
public struct CollectionPolicy: Sendable, Hashable {
  /// The prefix of the keys; empty for all. The policy with the longest prefix counts.
  public var prefix: Key
  /// The policy for conflicting changes.
  public var policy: ConflictPolicy

  /// A policy for a collection of keys.
  public init(prefix: some BytesConvertible, policy: ConflictPolicy) {
    self.prefix = Key(prefix)
    self.policy = policy
  }
}

extension Sequence<CollectionPolicy> {
  /// The policy that counts for a key.
  package func policy(for key: [UInt8]) -> ConflictPolicy {
    filter { key.starts(with: $0.prefix.bytes) }
      .max { $0.prefix.bytes.count < $1.prefix.bytes.count }?.policy ?? .detect
  }
}
