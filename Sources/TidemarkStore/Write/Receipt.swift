internal import TidemarkEngine

/// The outcome of a commit.
public struct Receipt: Sendable, Hashable {
  /// The sequences of the entries that the caller asked for, without those that the library derives
  /// from them, such as index rows; empty when nothing had to be changed.
  public var sequences: Range<UInt64>
  /// The epoch of the sequences.
  public var epoch: UInt64
  /// When it was committed, by the store's clock, which never goes back.
  public var commitTime: Timestamp

  /// The last of ``sequences``; of a commit that changed nothing the newest sequence that it saw.
  public var sequence: UInt64 { sequences.upperBound - 1 }

  /// The cursor behind this commit: changes since it are those of later commits.
  public var cursor: Cursor { Cursor(epoch: epoch, sequence: sequence) }

  init(_ result: CommitResult) {
    sequences = result.ownSequences
    epoch = result.epoch
    commitTime = HybridTime(result.commitTime).timestamp
  }
}
