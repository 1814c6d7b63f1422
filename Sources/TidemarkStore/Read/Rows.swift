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

  /// Where a later call goes on behind the entry that was returned last, or could not be read; nil
  /// before the first of a query that began at its beginning.
  public var cursor: PageCursor? { PageCursor(behind: walk.position) }
}

/// Keys of a query, read when they are asked for; values and all else stay untouched.
///
/// ```swift
/// var keys = try store.keys(prefix: "note/")
/// while let key = try keys.next() { print(key) }
/// ```
public struct KeyRows: ~Copyable {
  private var walk: RowWalk
  /// The sequence of the newest entry of the key that was returned last; 0 before the first.
  public private(set) var sequence: UInt64 = 0

  init(_ walk: consuming RowWalk) { self.walk = walk }

  /// The next key; nil at the end.
  public mutating func next() throws(TidemarkError) -> Key? {
    guard let row = try walk.nextRow() else { return nil }
    sequence = row.sequence
    return Key(row.key)
  }

  /// Where a later call goes on behind the key that was returned last; nil before the first of a
  /// query that began at its beginning.
  public var cursor: PageCursor? { PageCursor(behind: walk.position) }
}

/// Versions of a key, newest first, deletes and touches among them.
public struct VersionRows: ~Copyable {
  private let source: ReadSource
  private let view: EngineView
  private var walk: VersionWalk
  private let values: Bool

  init(_ source: ReadSource, _ view: EngineView, _ walk: VersionWalk, values: Bool) {
    self.source = source
    self.view = view
    self.walk = walk
    self.values = values
  }

  /// The next older version; nil at the end.
  /// - Throws: `damaged` when it cannot be read.
  public mutating func next() throws(TidemarkError) -> Entry? {
    while let version = try walk.next() {
      guard try view.shows(version) else { continue }
      return try source.entry(version, values: values)
    }
    return nil
  }
}
