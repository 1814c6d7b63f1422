/// The rows that most programs ask for, beside one engine: small enough for a phone.
struct SmallPicture {
  let report: JSONReport
  var peer = EngineName.sqlite

  private struct Bars {
    var title: String
    var own: Double
    var peer: Double
    var unit: String
    var moreIsBetter: Bool

    /// Above 1 where Tidemark is better.
    var ratio: Double { moreIsBetter ? own / peer : peer / own }
  }

  private static let rows = [
    ("P3", "Durable put, one writer"), ("P1", "Batch load, 1,000 records a batch"),
    ("P5", "Get, in memory"), ("P18", "Get, not in memory"), ("P10", "Scan of 100 records"),
    ("P13", "Size on disk"), ("P7m", "Memory, cache of 10 % of the data"),
  ]

  private static let width = 400.0
  private static let left = 8.0
  private static let longest = 230.0
  private static let rowHeight = 58.0
  private static let top = 72.0

  private var bars: [Bars] {
    Self.rows.compactMap { id, title in
      guard let row = report.rows.first(where: { $0.id == id }),
        let own = row.engines[EngineName.tidemark.rawValue]?.figure.median, own > 0,
        let value = row.engines[peer.rawValue]?.figure.median, value > 0
      else { return nil }
      return Bars(
        title: title, own: own, peer: value, unit: row.unit, moreIsBetter: row.moreIsBetter)
    }
  }

  func text() -> String {
    var canvas = SVGCanvas(width: Self.width)
    let title = "Tidemark beside \(peer.shownName)"
    canvas.write(title, Self.left, 20, .title)
    canvas.fill(Self.left, 30, width: 12, height: 12, .own)
    canvas.write("Tidemark", Self.left + 18, 41)
    canvas.fill(Self.left + 92, 30, width: 12, height: 12, .peer)
    canvas.write(peer.shownName, Self.left + 110, 41)
    canvas.write(
      "\(Figures.grouped(report.n)) records of \(report.valueBytes) bytes, \(report.runs([peer]))",
      Self.left, 60, .dim)
    let bars = bars
    for (place, bar) in bars.enumerated() {
      draw(bar, Self.top + Double(place) * Self.rowHeight, &canvas)
    }
    return canvas.finished(
      height: Self.top + Double(bars.count) * Self.rowHeight + 4, title: title)
  }

  private func draw(_ bar: Bars, _ y: Double, _ canvas: inout SVGCanvas) {
    canvas.write(bar.title, Self.left, y + 16, .head)
    canvas.write(verdict(bar), Self.width - Self.left, y + 16, .dim, .end)
    let scale = Self.longest / max(bar.own, bar.peer)
    for (value, at, style) in [(bar.own, y + 22, SVGCanvas.Style.own), (bar.peer, y + 38, .peer)] {
      let length = max(2, value * scale)
      canvas.fill(Self.left, at, width: length, height: 13, style)
      canvas.write(amount(value, bar.unit), Self.left + length + 6, at + 11)
    }
  }

  /// Which engine is better, and by how much.
  private func verdict(_ bar: Bars) -> String {
    let factor = Figures.times(max(bar.ratio, 1 / bar.ratio))
    if (0.95...1.05).contains(bar.ratio) { return "about equal" }
    let better = bar.ratio > 1 ? EngineName.tidemark.shownName : peer.shownName
    return bar.unit == "MB" ? "\(better) \(factor)× smaller" : "\(better) \(factor)× as fast"
  }

  /// A figure with its unit, as a sentence would have it.
  private func amount(_ value: Double, _ unit: String) -> String {
    guard unit == "k/s" else { return "\(Figures.grouped(value)) \(Figures.unit(unit))" }
    let rate = value * 1000
    if rate >= 1e6 { return "\(Figures.short(rate / 1e6)) million / s" }
    return "\(Figures.grouped(Int((rate / 100).rounded()) * 100)) / s"
  }
}
