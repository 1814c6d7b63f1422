/// Costs of an operation at several sizes, side by side.
struct GrowthReport {
  let results: [Results]

  /// The rows whose cost should hardly grow.
  static let rows = [
    "P1", "P1L", "P2", "P2b", "P5", "P5s", "P6", "P7", "P8", "P9", "P10", "P10c", "P11", "P12",
    "C", "P13c", "P14",
  ]

  func show() {
    guard let first = results.first else { return }
    print("\nGrowth: cost of an operation by the number of records")
    let sizes = results.map { String($0.n) }
    print("\n| Row | Work | Engine | " + sizes.joined(separator: " | ") + " | unit |")
    print("|---|---|---|" + String(repeating: "---|", count: sizes.count + 1))
    for row in Row.all(n: first.n) where Self.rows.contains(row.id) {
      for engine in first.engines(row.id) where engine != .empty {
        let cells = results.map { results in
          results.median(row.id, engine).map { Figures.short(cost(row, $0, results.n)) } ?? "-"
        }
        print(
          "| \(row.id) | \(row.title) | \(engine.rawValue) | " + cells.joined(separator: " | ")
            + " | \(unit(row)) |")
      }
    }
  }

  /// Rates become microseconds; sums of all records become shares of one.
  private func cost(_ row: Row, _ value: Double, _ n: Int) -> Double {
    switch row.unit {
    case "k/s": value > 0 ? 1000 / value : 0
    case "s": value * 1e6 / Double(n)
    case "MB": value * 1e6 / Double(n)
    default: value
    }
  }

  private func unit(_ row: Row) -> String {
    switch row.unit {
    case "k/s", "s": "us"
    case "MB": "bytes a record"
    default: row.unit
    }
  }
}
