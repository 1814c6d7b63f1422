public import TidemarkEngine

/// A commit of a store: the entries that one write or one batch committed, all or nothing.
public struct CommitInfo: Sendable, Hashable {
  /// The sequences of the commit's entries, as ``Store/undo(_:durability:)`` takes them.
  public var sequences: Range<UInt64>
  /// The time of the commit by the store's clock, which never goes back.
  public var commitTime: Timestamp
  /// The number of the commit's entries that the store still keeps: puts, deletes and touches.
  public var count: Int
  /// Whether the store surely still has all entries of the commit. It is false where compaction may
  /// have dropped some, which is up to `historyFrom` of ``Store/status``. A commit that lost all of
  /// its entries is not listed.
  public var isWhole: Bool

  init(_ commit: LoggedCommit, historyFrom: UInt64) {
    sequences = commit.firstSequence..<(commit.lastSequence + 1)
    commitTime = HybridTime(commit.commitTime).timestamp
    count = commit.count
    // `historyFrom` itself is the oldest state: only entries behind it are sure to be there.
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
  /// The library's own records are left out. A view lists no commits that end behind its sequence.
  /// - Parameters:
  ///   - sequence: only commits that end before it; nil for all.
  ///   - limit: most commits to return.
  public func commits(
    before sequence: UInt64? = nil, limit: Int = 100
  ) throws(TidemarkError) -> [CommitInfo] {
    let source = source
    let pin = try source.pinned()
    let end = sequence.map { min($0, pin.sequence + 1) } ?? (pin.sequence + 1)
    guard end > 1 else { return [] }
    let historyFrom = try source.engine.reader.bounds().historyFrom
    return try source.engine.reader.history.commits(through: end - 1, limit: limit).map {
      CommitInfo($0, historyFrom: historyFrom)
    }
  }

  /// Finds the commit that an entry belongs to.
  /// - Parameter sequence: of the entry.
  /// - Returns: nil when the store has no such entry, or no longer.
  public func commit(holding sequence: UInt64) throws(TidemarkError) -> CommitInfo? {
    let source = source
    let pin = try source.pinned()
    guard sequence > 0, sequence <= pin.sequence else { return nil }
    let historyFrom = try source.engine.reader.bounds().historyFrom
    let found = try source.engine.reader.history.commit(holding: sequence)
    guard let found, found.count > 0 else { return nil }
    return CommitInfo(found, historyFrom: historyFrom)
  }

  /// The entries of a commit that are kept, in order, read when they are asked for.
  /// - Parameters:
  ///   - commit: a commit from ``commits(before:limit:)``.
  ///   - values: whether values are read too.
  public func entries(of commit: CommitInfo, values: Bool = true) throws(TidemarkError) -> LogRows {
    let source = source
    let (first, end) = (commit.sequences.lowerBound, try source.pinned().sequence)
    // The view before the commit keeps its entries; if that one is refused as too old, the oldest
    // view keeps those that are left.
    let oldest = try source.engine.reader.bounds().historyFrom
    let pin = try source.engine.reader.view(at: min(end, first > oldest ? first - 1 : oldest))
    return LogRows(
      source, pin: pin, after: max(first, 1) - 1,
      through: min(end, commit.sequences.upperBound - 1), values: values)
  }
}

extension Store {
  /// Checks that a sequence is the end of a commit, since an undo takes commits back as a whole.
  /// - Throws: `invalidArgument` when the commit goes on behind the sequence.
  func checkNoCommitCrosses(_ sequence: UInt64) throws(TidemarkError) {
    guard sequence > 0, let cut = try engine.reader.history.commit(across: sequence) else { return }
    // The cursor skips derived entries (index rows and the like), which callers do not see: if only
    // such follow, the commit ends here for them.
    var rest = LogCursor(engine.reader, from: sequence + 1, through: cut.upperBound - 1)
    guard try rest.next() != nil else { return }
    throw TidemarkError(
      .invalidArgument,
      "sequence \(sequence) lies within a commit, which can only be undone as a whole: that of the "
        + "sequences \(cut.lowerBound)..<\(cut.upperBound)",
      sequences: cut.lowerBound...(cut.upperBound - 1))
  }
}
