internal import TidemarkEngine

/// The result of a commit: the sequences, the time and the cursor of the entries that were written.
public struct WriteReceipt: Sendable, Hashable {
  /// The sequences of the entries that the caller asked for, without those that the library derives
  /// from them, such as index rows; empty when nothing had to be changed.
  public var sequences: Range<UInt64>
  /// The epoch in which the store gave out the sequences; see ``EntryCursor/epoch``.
  public var epoch: UInt64
  /// The time of the commit by the store's clock, which never goes back.
  public var commitTime: Timestamp

  /// The last of ``sequences``. When the commit changed nothing, the newest sequence that it saw.
  public var sequence: UInt64 { sequences.upperBound - 1 }

  /// The cursor after this commit: a change feed from it delivers only later commits.
  public var cursor: EntryCursor { EntryCursor(epoch: epoch, sequence: sequence) }

  init(_ result: CommitResult) {
    sequences = result.ownSequences
    epoch = result.epoch
    commitTime = HybridTime(result.commitTime).timestamp
  }
}
