/// All rows that another engine is in too, with everybody's figure and a color for who is better.
struct SVGReport {
  let report: JSONReport

  private static let left = 14.0
  private static let labels = 420.0
  private static let units = 82.0
  private static let column = 84.0
  private static let lineHeight = 24.0
  private static let top = 88.0

  /// Other engines that have a figure, in their order.
  private var peers: [EngineName] {
    EngineName.allCases.filter { name in
      name != .tidemark && name != .empty
        && report.rows.contains { $0.engines[name.rawValue] != nil }
    }
  }

  private var width: Double {
    Self.left + Self.labels + Self.units + Double(peers.count + 1) * Self.column + Self.left
  }

  /// The right edge of a column; Tidemark's is the first one.
  private func edge(_ column: Int) -> Double {
    Self.left + Self.labels + Self.units + Double(column + 1) * Self.column
  }

  func text() -> String {
    var canvas = SVGCanvas(width: width)
    let title = "Tidemark beside other engines"
    canvas.write(title, Self.left, 26, .title)
    canvas.write(
      """
      \(Figures.grouped(report.n)) records, values of about \(report.valueBytes) bytes; \
      \(report.machine); \(report.runs()); \(report.date.prefix(10))
      """, Self.left, 46, .dim)
    for (column, name) in ([.tidemark] + peers).enumerated() {
      canvas.write(name.shownName, edge(column) - 8, Self.top - 12, .head, .end)
    }
    var y = Self.top
    for section in Row.sections(n: report.n) {
      let lines = section.rows.compactMap { row in
        line(row).map { (row: row, line: $0) }
      }
      guard !lines.isEmpty else { continue }
      canvas.write(section.title, Self.left, y + 16, .head)
      y += Self.lineHeight
      for (row, line) in lines {
        draw(row, line, y, &canvas)
        y += Self.lineHeight
      }
      y += 8
    }
    explain(y + 12, &canvas)
    return canvas.finished(height: y + 52, title: title)
  }

  private func explain(_ y: Double, _ canvas: inout SVGCanvas) {
    let fields: [(SVGCanvas.Style, String)] = [
      (.farWorse, "Tidemark is twice as good or better"), (.worse, "Tidemark is better"),
      (.better, "the other engine is better"), (.farBetter, "twice as good or better"),
    ]
    var x = Self.left
    for (style, text) in fields {
      canvas.fill(x, y, width: 16, height: 14, style)
      canvas.write(text, x + 22, y + 12, .dim)
      x += Double(text.count) * 6.6 + 44
    }
    var notes = "↑ more is better · ↓ less is better · – not measured, or not offered"
    if peers.contains(.rocksdbZstd) { notes += " · * with zstd" }
    if peers.contains(.rocksdbTuned) { notes += " · ** tuned as its wiki says" }
    canvas.write(notes, Self.left, y + 32, .dim)
  }

  /// What was measured of a row, if another engine is in it.
  private func line(_ row: Row) -> JSONReport.Line? {
    report.rows.first {
      $0.id == row.id && $0.unit != "x" && $0.bestPeer != nil
        && $0.engines[EngineName.tidemark.rawValue] != nil
    }
  }

  private func draw(
    _ row: Row, _ line: JSONReport.Line, _ y: Double, _ canvas: inout SVGCanvas
  ) {
    canvas.write(row.title, Self.left, y + 16)
    let unit = Figures.unit(row.unit) + (row.moreIsBetter ? " ↑" : " ↓")
    canvas.write(unit, Self.left + Self.labels, y + 16, .dim)
    guard let own = line.engines[EngineName.tidemark.rawValue]?.figure.median else { return }
    canvas.write(Figures.grouped(own), edge(0) - 8, y + 16, .head, .end)
    for (column, name) in peers.enumerated() {
      let right = edge(column + 1)
      guard let value = line.engines[name.rawValue]?.figure.median else {
        canvas.write("–", right - 8, y + 16, .dim, .end)
        continue
      }
      if let style = style(row.moreIsBetter ? value / own : own / value) {
        canvas.fill(right - Self.column + 4, y + 1, width: Self.column - 6, height: 21, style)
      }
      canvas.write(Figures.grouped(value), right - 8, y + 16, .text, .end)
    }
  }

  /// - Parameter ratio: how many times as good as Tidemark the other engine is.
  private func style(_ ratio: Double) -> SVGCanvas.Style? {
    switch ratio {
    case ...0.5: .farWorse
    case ..<0.95: .worse
    case 2...: .farBetter
    case 1.05...: .better
    default: nil
    }
  }
}
