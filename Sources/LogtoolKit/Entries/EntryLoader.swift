internal import TidemarkEngine

/// An entry with everything that is printed of it.
struct LoadedEntry {
  var key: [UInt8]
  var info: EntryInfo
  /// Empty unless values were asked for.
  var value: [UInt8] = []
}

/// Loads what rows of a scan stand for.
///
/// Rows come in the order of keys, and entries lie elsewhere. So a number of rows is loaded at a
/// time, in the log's order: then every frame and block is decoded about once per number of rows,
/// not once per row.
struct EntryLoader {
  /// Rows worth loading together.
  static let rows = Engine.entriesTogether
  private static let valueBytes = 32 << 20
  private let engine: Engine

  init(_ engine: Engine) { self.engine = engine }

  /// Calls `body` with the entry of every row, in the rows' order.
  func load(
    _ rows: [ScanRow], values: Bool, _ body: (LoadedEntry) throws -> Void
  ) throws {
    let (infos, ranks) = try infos(rows)
    var start = 0
    while start < rows.count {
      var end = start
      var bytes = 0
      while end < rows.count, end == start || bytes + infos[end].valueLength <= Self.valueBytes {
        bytes += values ? infos[end].valueLength : 0
        end += 1
      }
      let loaded = values ? try self.values(infos, ranks, start..<end) : []
      for row in start..<end {
        try body(
          LoadedEntry(
            key: rows[row].key, info: infos[row], value: values ? loaded[row - start] : []))
      }
      start = end
    }
  }

  /// - Returns: also of each row its place among them in the order of the log.
  private func infos(
    _ rows: [ScanRow]
  ) throws(TidemarkError) -> (infos: [EntryInfo], ranks: [Int]) {
    var infos: [(row: Int, info: EntryInfo)] = []
    infos.reserveCapacity(rows.count)
    var ranks = [Int](repeating: 0, count: rows.count)
    try engine.forEachInfo(of: rows) { (row, info) throws(TidemarkError) in
      ranks[row] = infos.count
      infos.append((row, info))
    }
    infos.sort { $0.row < $1.row }
    return (infos.map(\.info), ranks)
  }

  private func values(
    _ infos: [EntryInfo], _ ranks: [Int], _ range: Range<Int>
  ) throws(TidemarkError) -> [[UInt8]] {
    var values = [[UInt8]](repeating: [], count: range.count)
    for row in range.sorted(by: { ranks[$0] < ranks[$1] }) {
      values[row - range.lowerBound] = try engine.value(of: infos[row])
    }
    return values
  }
}

extension Engine {
  /// The value of an entry; empty when it has none.
  func value(of info: EntryInfo) throws(TidemarkError) -> [UInt8] {
    guard !info.kind.removes, info.valueLength > 0 else { return [] }
    return try withValue(of: info.valueSequence) { (value, _) throws(TidemarkError) in
      [UInt8](copying: value)
    }
  }
}
