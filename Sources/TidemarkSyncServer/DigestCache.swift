internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Tables of fingerprints, as long as nothing has changed in the feed.
struct DigestCache: Sendable {
  struct Name: Hashable {
    var scope: SyncScope
    var reach: SyncScope?
  }

  struct Row {
    var name: Name
    /// Up to here the feed was looked at for the table.
    var head: UInt64
    var table: DigestTable
  }

  /// Most tables, and most rows of all of them together.
  private static let tables = 8
  private static let rowsOfAll = 2 * DigestTable.rowLimit

  /// The last one used stands at the end.
  private var rows: [Row] = []

  /// Takes out a table that can tell of a part.
  mutating func take(_ name: Name, _ path: [UInt8]) -> Row? {
    let index = rows.lastIndex { $0.name == name && $0.table.answers(path) }
    return index.map { rows.remove(at: $0) }
  }

  /// Keeps a table, and lets go of others for it.
  mutating func insert(_ row: Row) {
    rows.append(row)
    while rows.count > Self.tables
      || (rows.count > 1 && rows.reduce(0) { $0 + $1.table.rowCount } > Self.rowsOfAll)
    {
      rows.removeFirst()
    }
  }
}
