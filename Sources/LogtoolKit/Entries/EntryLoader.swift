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
/// Rows come in the order of keys, entries lie in the order of sequences. So a number of rows is
/// loaded at a time, in the log's order: then every frame and block is decoded about once per
/// number of rows, not once per row.
struct EntryLoader {
  /// Rows worth loading together.
  static let rows = 16_384
  private static let valueBytes = 32 << 20
  private let engine: Engine

  init(_ engine: Engine) { self.engine = engine }

  /// Calls `body` with the entry of every row, in the rows' order.
  func load(
    _ rows: [ScanRow], values: Bool, _ body: (LoadedEntry) throws -> Void
  ) throws {
    let infos = try infos(rows)
    var start = 0
    while start < rows.count {
      var end = start
      var bytes = 0
      while end < rows.count, end == start || bytes + infos[end].valueLength <= Self.valueBytes {
        bytes += values ? infos[end].valueLength : 0
        end += 1
      }
      let loaded = values ? try self.values(infos, start..<end) : []
      for row in start..<end {
        try body(
          LoadedEntry(
            key: rows[row].key, info: infos[row], value: values ? loaded[row - start] : []))
      }
      start = end
    }
  }

  private func infos(_ rows: [ScanRow]) throws(TidemarkError) -> [EntryInfo] {
    var infos: [(row: Int, info: EntryInfo)] = []
    infos.reserveCapacity(rows.count)
    for row in rows.indices.sorted(by: { rows[$0].sequence < rows[$1].sequence }) {
      infos.append((row, try engine.info(try engine.entry(at: rows[row].sequence))))
    }
    infos.sort { $0.row < $1.row }
    return infos.map(\.info)
  }

  private func values(
    _ infos: [EntryInfo], _ range: Range<Int>
  ) throws(TidemarkError) -> [[UInt8]] {
    var values = [[UInt8]](repeating: [], count: range.count)
    for row in range.sorted(by: { infos[$0].valueSequence < infos[$1].valueSequence }) {
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
