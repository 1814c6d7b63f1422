public import Tidemark

/// Decides what the peer does with a change that is in conflict: its base is not the key's current
/// version.
public enum ConflictPolicy: UInt8, Sendable, Hashable, CaseIterable {
  /// The peer does not apply the change, and its writer must resolve the conflict. No change is
  /// lost silently.
  case detect = 1
  /// The later of the two changes wins, by the commit times on their devices. A commit time after
  /// the moment at which the server received the change counts as that moment. The losing change
  /// stays in the server's log.
  case lastWriterWins = 2
}

/// The ``ConflictPolicy`` for all keys that begin with a prefix.
public struct CollectionPolicy: Sendable, Hashable {
  /// The prefix of the keys; empty for all keys. If several prefixes match a key, the longest one
  /// decides.
  public var prefix: Key
  /// How conflicts on keys with the prefix are decided.
  public var policy: ConflictPolicy

  /// Creates a policy for the keys that begin with a prefix.
  /// - Parameters:
  ///   - prefix: the prefix of the keys, as text or bytes; empty for all keys.
  ///   - policy: how conflicts on these keys are decided.
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
