/// Names and figures as pictures show them.
extension EngineName {
  var shownName: String {
    switch self {
    case .tidemark: "Tidemark"
    case .lmdb: "LMDB"
    case .leveldb: "LevelDB"
    case .rocksdb: "RocksDB"
    case .rocksdbZstd: "RocksDB*"
    case .rocksdbTuned: "RocksDB**"
    case .sqlite: "SQLite"
    case .tkrzw: "Tkrzw"
    case .grdb: "GRDB"
    case .empty: "nothing"
    }
  }
}

extension Figures {
  static func unit(_ unit: String) -> String {
    switch unit {
    case "k/s": "thousand/s"
    case "us": "µs"
    default: unit
    }
  }

  static func grouped(_ value: Int) -> String {
    var digits = String(value)
    var groups: [Substring] = []
    while digits.count > 3 {
      groups.insert(digits.suffix(3), at: 0)
      digits.removeLast(3)
    }
    return ([digits[...]] + groups).joined(separator: ",")
  }

  /// Three digits that count; thousands are set apart.
  static func grouped(_ value: Double) -> String {
    value >= 1000 && value < 1e15 ? grouped(Int(value.rounded())) : short(value)
  }

  /// How many times, to two digits that count.
  static func times(_ factor: Double) -> String { fixed(factor, factor < 10 ? 1 : 0) }
}

extension JSONReport {
  /// How often some engines were measured, or all.
  func runs(_ engines: [EngineName] = EngineName.allCases) -> String {
    let lines = rows.flatMap { row in engines.compactMap { row.engines[$0.rawValue] } }
    let runs = lines.map(\.figure.runs)
    let least = runs.min() ?? 0
    let most = runs.max() ?? 0
    if most == 1 { return "one run" }
    return least == most ? "medians of \(most) runs" : "medians of \(least) to \(most) runs"
  }
}
