public import TidemarkEngine

/// Entries of a query, read when they are asked for. They show one state of the store, whatever
/// is written meanwhile.
///
/// ```swift
/// var rows = try store.entries(prefix: "note/")
/// while let entry = try rows.next() { print(entry.key) }
/// ```
public struct Rows: ~Copyable {
  private var walk: EntryWalk

  init(_ walk: consuming EntryWalk) { self.walk = walk }

  /// The next entry; nil at the end.
  /// - Throws: `damaged` when it cannot be read.
  public mutating func next() throws(TidemarkError) -> Entry? {
    try walk.nextEntry()
  }
}

/// Keys of a query, read when they are asked for; values and all else stay untouched.
///
/// ```swift
/// var keys = try store.keys(prefix: "note/")
/// while let key = try keys.next() { print(key) }
/// ```
public struct KeyRows: ~Copyable {
  private var walk: RowWalk

  init(_ walk: consuming RowWalk) { self.walk = walk }

  /// The next key; nil at the end.
  public mutating func next() throws(TidemarkError) -> Key? {
    try walk.nextRow().map { Key($0.key) }
  }
}
