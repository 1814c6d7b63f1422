/// The figure that a row is to reach.
enum Target {
  /// So many times an engine's figure of the same run, in this row or in another.
  case times(Double, EngineName, row: String? = nil)
  /// So many times the best peer's.
  case timesBest(Double)
  /// So many times the machine's own.
  case timesLimit(Double, String)
  /// A figure that depends on nothing.
  case figure(Double)

  /// A target held against the results; nil where something was not measured.
  struct Verdict: Codable {
    var text: String
    /// The figure that is held against the target.
    var value: Double
    var isMet: Bool
  }

  func verdict(_ row: Row, _ results: Results) -> Verdict? {
    guard let own = results.median(row.id, .tidemark) else { return nil }
    let sign = row.moreIsBetter ? ">=" : "<="
    func verdict(_ value: Double, _ wanted: Double, _ text: String) -> Verdict {
      Verdict(
        text: "\(sign) \(Figures.short(wanted))\(text)", value: value,
        isMet: row.moreIsBetter ? value >= wanted : value <= wanted)
    }
    switch self {
    case .times(let factor, let engine, let other):
      guard let peer = results.median(other ?? row.id, engine), peer > 0 else { return nil }
      let name = engine.rawValue + (other.map { " (\($0))" } ?? "")
      return verdict(own / peer, factor, "x \(name)")
    case .timesBest(let factor):
      guard let best = results.bestPeer(row), best.value > 0 else { return nil }
      return verdict(own / best.value, factor, "x the best")
    case .timesLimit(let factor, let name):
      guard let limit = results.limit(name), limit > 0 else { return nil }
      return verdict(own / limit, factor, "x the machine's")
    case .figure(let figure):
      return verdict(own, figure, " \(row.unit)")
    }
  }
}

/// Figures as text.
enum Figures {
  /// Three digits that count.
  static func short(_ value: Double) -> String {
    let size = abs(value)
    let digits = size >= 100 || size == size.rounded() ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3
    return fixed(value, digits)
  }

  static func fixed(_ value: Double, _ digits: Int) -> String {
    var scale = 1.0
    for _ in 0..<digits { scale *= 10 }
    guard value.isFinite, abs(value) * scale < 1e15 else { return "\(value)" }
    let rounded = Int((abs(value) * scale).rounded())
    let sign = value < 0 && rounded > 0 ? "-" : ""
    guard digits > 0 else { return sign + String(rounded) }
    let whole = rounded / Int(scale)
    let rest = String(rounded % Int(scale))
    return sign + "\(whole)." + String(repeating: "0", count: digits - rest.count) + rest
  }

  /// Prints a row for each title, with a column for each engine: the median of its runs, and the
  /// least and the most.
  static func printTable(_ titles: [String], _ columns: [(name: String, runs: [[Double]])]) {
    print("| | " + columns.map(\.name).joined(separator: " | ") + " |")
    print("|---|" + String(repeating: "---|", count: columns.count))
    for (row, title) in titles.enumerated() {
      let cells = columns.map { column in
        let figures = Statistics(column.runs.map { $0[row] })
        let median = short(figures.median)
        guard column.runs.count > 1 else { return median }
        return "\(median) (\(short(figures.smallest))..\(short(figures.largest)))"
      }
      print("| \(title) | " + cells.joined(separator: " | ") + " |")
    }
  }

  static func padded(_ text: String, _ width: Int, right: Bool = false) -> String {
    let space = String(repeating: " ", count: max(0, width - text.count))
    return right ? space + text : text + space
  }
}
