/// One key that a scan has found.
package struct ScanRow: Sendable {
  package var key: [UInt8]
  /// The sequence of the key's newest entry in the scan's view.
  package var sequence: UInt64
  package var isTouch: Bool
}

/// Some rows of a scan, whose keys lie in one piece of memory.
package struct ScanPage {
  private struct Row {
    /// Which key of `keys`.
    var key: Int
    var sequence: UInt64
    var isTouch: Bool
  }

  private let keys: KeyPage
  private var rows: [Row] = []
  /// Whether every row is the newest entry of its key, or was when the page was made.
  let isOfPresent: Bool

  /// Without rows yet, of keys that were found.
  init(_ keys: KeyPage, isOfPresent: Bool = false) {
    self.keys = keys
    self.isOfPresent = isOfPresent
    rows.reserveCapacity(keys.count)
  }

  /// Rows that were gathered and sorted.
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

  /// Whether a row's entry is a cached value, as far as is known: not of rows that were gathered.
  func isCached(_ position: Int) -> Bool { keys.slot(at: rows[position].key).size.isCached }

  /// A row with a key of its own.
  package func row(at position: Int) -> ScanRow {
    let (sequence, isTouch) = self[position]
    return ScanRow(
      key: [UInt8](copying: key(at: position)), sequence: sequence, isTouch: isTouch)
  }

  /// Takes a key in, with its entry in the view of the scan.
  mutating func append(key: Int, sequence: UInt64, isTouch: Bool) {
    rows.append(Row(key: key, sequence: sequence, isTouch: isTouch))
  }

  /// The sequences of the rows' entries.
  var sequences: [UInt64] { rows.map(\.sequence) }

  /// Leaves out rows.
  /// - Parameter isWanted: of each row.
  mutating func filter(_ isWanted: [Bool]) {
    rows = zip(rows, isWanted).filter(\.1).map(\.0)
  }
}
