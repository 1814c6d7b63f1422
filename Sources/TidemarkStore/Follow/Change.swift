/// An event that is delivered to a follower of a store.
public enum Change: Sendable {
  /// An entry was committed.
  case entry(Entry, at: Cursor)
  /// Compaction has dropped deletes that the follower has not seen, so it may have keys that the
  /// store has not. It drops all it has; the changes that follow build the state up from nothing.
  case reset(at: Cursor)

  /// The cursor to store once this change is dealt with: following goes on behind it.
  public var cursor: Cursor {
    switch self {
    case .entry(_, let cursor), .reset(let cursor): cursor
    }
  }

  /// The entry; nil for a reset.
  public var entry: Entry? {
    if case .entry(let entry, _) = self { return entry }
    return nil
  }
}
