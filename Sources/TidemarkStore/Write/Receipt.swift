internal import TidemarkEngine

/// The outcome of a commit.
public struct Receipt: Sendable, Hashable {
  /// The sequences that the commit took; empty when nothing had to be changed.
  public var sequences: Range<UInt64>
  /// The epoch of the sequences.
  public var epoch: UInt64
  /// When it was committed, by the store's clock, which never goes back.
  public var commitTime: Timestamp

  /// The last sequence that the commit took, or, when it took none, the one before it.
  public var sequence: UInt64 { sequences.upperBound - 1 }

  /// Where a follower that has seen this commit stands.
  public var cursor: Cursor { Cursor(epoch: epoch, sequence: sequence) }

  init(_ result: CommitResult) {
    sequences = result.ownSequences
    epoch = result.epoch
    commitTime = HybridTime(result.commitTime).timestamp
  }
}
