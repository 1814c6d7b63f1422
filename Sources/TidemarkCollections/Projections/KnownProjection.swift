public import TidemarkEngine

/// A projection that a store knows.
public struct KnownProjection: Sendable, Hashable {
  /// The name.
  public var name: String
  /// The last sequence that its checkpoint has read: compaction keeps what comes behind it.
  public var sequence: UInt64
  /// When the checkpoint was written. After 90 days without one, nothing is kept for it.
  public var checkpoint: Timestamp
}
