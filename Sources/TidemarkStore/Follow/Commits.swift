public import TidemarkEngine

/// Entries that were written in one go, all or nothing: a single write, or a batch.
public struct Commit: Sendable, Hashable {
  /// Its sequences, as ``Store/undo(_:durability:)`` takes them.
  public var sequences: Range<UInt64>
  /// When it was committed, by the store's clock, which never goes back.
  public var commitTime: Timestamp
  /// How many of its entries are kept: puts, deletes and touches.
  public var count: Int
  /// Whether no entry of it can be gone. Compaction may have dropped entries up to the oldest state
  /// that can be viewed (`historyFrom`); a commit that lost all of its entries is not listed.
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
  ) throws(TidemarkError) -> [Commit] {
    let source = source
    let pin = try source.pinned()
    let end = sequence.map { min($0, pin.sequence + 1) } ?? (pin.sequence + 1)
    guard end > 1 else { return [] }
    let historyFrom = try source.engine.reader.bounds().historyFrom
    return try source.engine.reader.history.commits(through: end - 1, limit: limit).map {
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
  ///   - commit: a commit from ``commits(before:limit:)``.
  ///   - values: whether values are read too.
  public func entries(of commit: Commit, values: Bool = true) throws(TidemarkError) -> LogRows {
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
