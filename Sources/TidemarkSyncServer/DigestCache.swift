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

  /// Takes out a table that can tell of a part, with up to where the feed was looked at for it.
  mutating func take(_ name: Name, _ path: [UInt8]) -> (table: DigestTable, head: UInt64)? {
    guard let index = rows.lastIndex(where: { $0.name == name && $0.table.answers(path) }) else {
      return nil
    }
    let row = rows.remove(at: index)
    return (row.table, row.head)
  }

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
