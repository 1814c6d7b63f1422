public import TidemarkEngine

/// Entries that were written in one go, all or nothing: a single write, or a batch.
public struct Commit: Sendable, Hashable {
  /// Its sequences, as ``Store/undo(_:durability:)`` takes them.
  public var sequences: Range<UInt64>
  /// When it was committed, by the store's clock, which never goes back.
  public var commitTime: Timestamp
  /// How many of its entries are kept: puts, deletes and touches.
  public var count: Int
  /// Whether nothing of it can be gone. Of history that was compacted only those entries are left
  /// that are still needed, and a commit that lost all of them does not show at all.
  public var isWhole: Bool

  init(_ commit: LoggedCommit, historyFrom: UInt64) {
    sequences = commit.firstSequence..<(commit.lastSequence + 1)
    commitTime = HybridTime(commit.commitTime).timestamp
    count = commit.count
    isWhole = historyFrom <= 1 || commit.firstSequence > historyFrom
  }
}

extension StoreReader {
  /// The commits that are kept, the newest first, a page at a time.
  ///
  /// ```swift
  /// var page = try store.commits(limit: 20)
  /// page = try store.commits(before: page.last?.sequences.lowerBound, limit: 20)
  /// ```
  /// Records of the library do not show; in a view, commits behind it do not either.
  /// - Parameters:
  ///   - sequence: only commits that end before it; nil for all.
  ///   - limit: most commits to return.
  public func commits(
    before sequence: UInt64? = nil, limit: Int = 100
  ) throws(TidemarkError) -> [Commit] {
    let source = source
    let pin = try source.pinned()
    let last = sequence.map { min($0, pin.sequence + 1) } ?? (pin.sequence + 1)
    guard last > 1 else { return [] }
    let historyFrom = try source.engine.reader.bounds().historyFrom
    return try source.engine.reader.history.commits(through: last - 1, limit: limit).map {
      Commit($0, historyFrom: historyFrom)
    }
  }

  /// The commit that an entry belongs to.
  /// - Parameter sequence: of the entry.
  /// - Returns: nil when the store has no such entry, or no longer.
  public func commit(holding sequence: UInt64) throws(TidemarkError) -> Commit? {
    let source = source
    let pin = try source.pinned()
    guard sequence > 0, sequence <= pin.sequence else { return nil }
    let historyFrom = try source.engine.reader.bounds().historyFrom
    let found = try source.engine.reader.history.commit(holding: sequence)
    guard let found, found.count > 0 else { return nil }
    return Commit(found, historyFrom: historyFrom)
  }

  /// The entries of a commit that are kept, in order, read when they are asked for.
  /// - Parameters:
  ///   - commit: as ``commits(before:limit:)`` tells of it.
  ///   - values: whether values are read too.
  public func entries(
    of commit: Commit, values: Bool = true
  ) throws(TidemarkError) -> LogRows {
    let source = source
    let (first, end) = (commit.sequences.lowerBound, try source.pinned().sequence)
    // A commit whose history is gone in part is shown as far as it is left.
    let oldest = try source.engine.reader.bounds().historyFrom
    let pin = try source.engine.reader.view(at: min(end, first > oldest ? first - 1 : oldest))
    return LogRows(
      source, pin: pin, after: max(first, 1) - 1,
      through: min(end, commit.sequences.upperBound - 1), values: values)
  }
}

extension Store {
  /// - Throws: `invalidArgument` when an undo up to or from behind a sequence would take one part
  ///   of a commit back and leave the other.
  func checkNoCommitCrosses(_ sequence: UInt64) throws(TidemarkError) {
    guard sequence > 0, let cut = try engine.reader.history.commit(across: sequence) else { return }
    // Derived entries at a commit's end are none of the caller's.
    var rest = LogCursor(engine.reader, from: sequence + 1, through: cut.upperBound - 1)
    guard try rest.next() != nil else { return }
    throw TidemarkError(
      .invalidArgument,
      "sequence \(sequence) lies within a commit, which can only be undone as a whole: that of the "
        + "sequences \(cut.lowerBound)..<\(cut.upperBound)",
      sequences: cut.lowerBound...(cut.upperBound - 1))
  }
}
