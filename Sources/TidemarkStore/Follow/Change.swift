/// An event that a follower of a store is told.
public enum Change: Sendable {
  /// An entry was committed.
  case entry(Entry, at: Cursor)
  /// Deletes that the follower has not seen are gone. Whatever it has gathered is void; what
  /// comes next builds the state up from the beginning.
  case reset(at: Cursor)

  /// Where a follower stands once it has dealt with this; what to store.
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
