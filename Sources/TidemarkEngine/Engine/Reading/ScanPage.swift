/// One key that a scan has found.
package struct ScanRow: Sendable {
  package var key: [UInt8]
  /// The sequence of the key's newest entry in the scan's view.
  package var sequence: UInt64
  package var isTouch: Bool
}

/// Some rows of a scan. Their keys lie in one piece of memory, so that none is allocated per row.
package struct ScanPage {
  private struct Row {
    /// The index of the row's key in `keys`, which may have more keys than there are rows.
    var key: Int
    var sequence: UInt64
    var isTouch: Bool
  }

  private let keys: KeyPage
  private var rows: [Row] = []
  /// Whether every row was its key's newest entry when the page was made, not one of the past.
  let isOfPresent: Bool

  /// A page without rows; `append` adds those of `keys` that the scan wants.
  init(_ keys: KeyPage, isOfPresent: Bool = false) {
    self.keys = keys
    self.isOfPresent = isOfPresent
    rows.reserveCapacity(keys.count)
  }

  /// A page of rows in any order, which may be of the past.
  init(_ gathered: [ScanRow]) {
    var keys = KeyPage()
    for row in gathered {
      let slot = Slot(sequence: row.sequence, labelSet: 0, size: SizeClass(bytes: 0))
      keys.append(row.key.rawSpan, slot)
    }
    self.init(keys)
    for (number, row) in gathered.enumerated() {
      append(key: number, sequence: row.sequence, isTouch: row.isTouch)
    }
  }

  package var isEmpty: Bool { rows.isEmpty }
  /// The length of all keys together.
  var keyBytes: Int { keys.byteCount }
  package var count: Int { rows.count }

  /// The key of a row.
  @_lifetime(borrow self)
  package func key(at position: Int) -> RawSpan { keys.key(at: rows[position].key) }

  /// The sequence of a row's entry, and whether it is a touch.
  package subscript(position: Int) -> (sequence: UInt64, isTouch: Bool) {
    (rows[position].sequence, rows[position].isTouch)
  }

  /// Whether a row's entry is a cached value; false for pages of gathered rows, which do not know.
  func isCached(_ position: Int) -> Bool { keys.slot(at: rows[position].key).size.isCached }

  /// A row with a copy of its key.
  package func row(at position: Int) -> ScanRow {
    let (sequence, isTouch) = self[position]
    return ScanRow(key: [UInt8](copying: key(at: position)), sequence: sequence, isTouch: isTouch)
  }

  /// Adds a row: the index of its key, and the key's entry in the scan's view.
  mutating func append(key: Int, sequence: UInt64, isTouch: Bool) {
    rows.append(Row(key: key, sequence: sequence, isTouch: isTouch))
  }

  var sequences: [UInt64] { rows.map(\.sequence) }

  /// Drops the rows that are not wanted.
  mutating func filter(_ isWanted: [Bool]) { rows = zip(rows, isWanted).filter(\.1).map(\.0) }
}
