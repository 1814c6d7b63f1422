/// The values of many rows of a scan, read in the order of the log and kept for the order of keys.
/// In segments that were never compacted, neighbouring keys may lie in blocks far apart, and a scan
/// would decode a block for each row. Read for many rows together, each block is decoded once.
struct GatheredValues {
  private static let firstRows = 2_048
  private static let mostRows = 64 << 10
  private static let leastBytes = 4 << 20
  private static let mostBytes = 16 << 20
  private let room: Int
  /// How many rows to gather next: doubled each time, as far as their values are likely to fit into
  /// `room`; 0 ends gathering, where most values are too large to keep.
  private(set) var rowsTogether = Self.firstRows
  private var bytes: [UInt8] = []
  /// Where each row's value lies in `bytes`; nil for a value that is not kept here.
  private var ranges: [Range<Int>?] = []

  init(_ reader: Reader) {
    room = max(Self.leastBytes, min(Self.mostBytes, reader.configuration.cacheBytes / 2))
  }

  /// Reads the values of rows, as many as there is room for.
  mutating func read(_ rows: [(sequence: UInt64, isTouch: Bool)], by rowReader: inout RowReader) {
    bytes.removeAll(keepingCapacity: true)
    ranges = Array(repeating: nil, count: rows.count)
    let order = rowReader.readingOrder(rows)
    var (prepared, seen, spent) = (0, 0, 0)
    for (number, index) in order.enumerated() {
      guard spent < room else { break }
      if number == prepared {
        prepared += rowReader.prepare(order.count - number) { rows[order[number + $0]] }
      }
      let row = rows[index]
      // An error is ignored here: the row is read again, and throws, when its turn comes.
      try? rowReader.read(row.sequence, isTouch: row.isTouch) { value in
        // Values that are too large to keep count as well, so that a few of them end this loop.
        spent += value.byteCount
        guard value.byteCount <= min(room / 4, room - bytes.count) else { return }
        let start = bytes.count
        bytes.append(copying: value)
        ranges[index] = start..<bytes.count
      }
      seen += 1
    }
    let fitting = seen * room / max(1, spent)
    rowsTogether = bytes.count < spent / 2 ? 0 : min(2 * rows.count, fitting, Self.mostRows)
  }

  /// - Returns: the value of a row; nil if it is not kept here and has to be read alone.
  @_lifetime(borrow self)
  func value(of row: Int) -> RawSpan? {
    guard let range = ranges[row] else { return nil }
    return bytes.rawSpan.extracting(range)
  }
}
