public import Tidemark

/// The fate of a change that was not made upon what its key holds now.
public enum ConflictPolicy: UInt8, Sendable, Hashable, CaseIterable {
  /// It is not applied; its writer is told, and resolves it. Nothing is lost unseen.
  case detect = 1
  /// The later of the two stays, by the time at which each was committed on its device, but no
  /// later than the server received it. The other one is kept in the server's log.
  case lastWriterWins = 2
}

/// Which policy counts for the keys that begin with a prefix.
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
