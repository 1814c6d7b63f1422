/// One event of a store's change feed: a committed entry, or a reset. See
/// ``Store/changes(since:prefix:delivery:)``.
@nonexhaustive
public enum EntryChange: Sendable {
  /// A put, delete or touch that was committed, with the cursor to store once you have handled it.
  case entry(Entry, at: EntryCursor)
  /// The follower must drop the state that it has built. Compaction has dropped deletes that the
  /// follower has not seen, so it may hold keys that the store no longer has. The changes that
  /// follow deliver the whole state.
  case reset(at: EntryCursor)

  /// The cursor to store once you have handled this change. Following from it goes on with the next
  /// change.
  public var cursor: EntryCursor {
    switch self {
    case .entry(_, let cursor), .reset(let cursor): cursor
    }
  }

  /// The committed entry; nil for ``reset(at:)``.
  public var entry: Entry? {
    if case .entry(let entry, _) = self { return entry }
    return nil
  }
}
