internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Tables of fingerprints, as long as nothing has changed in the feed.
struct DigestCache: Sendable {
  struct Name: Hashable {
    var scope: SyncScope
    var reach: SyncScope?
  }

  private struct Row {
    var name: Name
    var head: UInt64
    var table: DigestTable
  }

  /// Most tables, and most rows of all of them together.
  private static let tables = 8
  private static let rowsOfAll = 2 * DigestTable.rowLimit

  /// The last one used stands at the end.
  private var rows: [Row] = []

  /// A table that can tell of a part, and up to where the feed was looked at for it.
  mutating func find(_ name: Name, _ path: [UInt8]) -> (table: DigestTable, head: UInt64)? {
    guard let index = rows.lastIndex(where: { $0.name == name && $0.table.answers(path) }) else {
      return nil
    }
    let row = rows.remove(at: index)
    rows.append(row)
    return (row.table, row.head)
  }

  /// Says that a table that was just found is good up to a later offset.
  mutating func extend(to head: UInt64) {
    guard !rows.isEmpty else { return }
    rows[rows.count - 1].head = head
  }

  /// Lets go of the table that was just found.
  mutating func removeLast() { _ = rows.popLast() }

  /// Keeps a table, and lets go of others for it.
  mutating func insert(_ name: Name, head: UInt64, _ table: DigestTable) {
    rows.append(Row(name: name, head: head, table: table))
    while rows.count > Self.tables
      || (rows.count > 1 && rows.reduce(0) { $0 + $1.table.rowCount } > Self.rowsOfAll)
    {
      rows.removeFirst()
    }
  }
}
