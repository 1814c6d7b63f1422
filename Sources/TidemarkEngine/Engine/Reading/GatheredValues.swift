/// The values of many rows of a scan, read in the order of the log.
///
/// Rows of a page lie each in a block of its own where data was written in any order and never
/// compacted. For many rows together each block is decoded once, and the values wait here until
/// their turn comes.
struct GatheredValues {
  /// One byte of so many that are decoded must be wanted, else rows are gathered.
  private static let wastedShare = 4
  private static let firstRows = 2_048
  private static let mostRows = 64 << 10
  private static let leastBytes = 4 << 20
  private static let mostBytes = 16 << 20

  private let room: Int
  /// How many rows are worth gathering next; none where values are too large to wait.
  private(set) var rowsTogether = Self.firstRows
  private var bytes: [UInt8] = []
  /// By row where its value lies in `bytes`; nil for what is to be read by itself.
  private var ranges: [Range<Int>?] = []

  init(_ reader: Reader) {
    room = max(Self.leastBytes, min(Self.mostBytes, reader.configuration.cacheBytes / 2))
  }

  /// Whether blocks were decoded mostly for what nobody wanted of them.
  /// - Parameters:
  ///   - decoded: bytes of blocks that were decoded, but for those of compacted data.
  ///   - handedOut: bytes of all values, wherever they came from.
  static func pays(decoded: Int, handedOut: Int) -> Bool { decoded > wastedShare * handedOut }

  /// Reads the values of rows, as many as there is room for.
  mutating func read(
    _ rows: [(sequence: UInt64, isTouch: Bool)], by rowReader: inout RowReader
  ) {
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
      // A row that cannot be read tells of it when its turn comes.
      try? rowReader.read(row.sequence, isTouch: row.isTouch) { value in
        // A value that is not kept was read, too: a few large ones end it.
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

  /// The value of a row.
  /// - Returns: nil for what is to be read by itself.
  @_lifetime(borrow self)
  func value(of row: Int) -> RawSpan? {
    guard let range = ranges[row] else { return nil }
    return bytes.rawSpan.extracting(range)
  }
}
