import Foundation

/// A bar for each row that peers are in too: how many times as good as the best of them.
struct SVGReport {
  let report: JSONReport

  private struct Bar {
    var row: JSONReport.Line
    var engine: String
    /// Above 1 where Tidemark is better.
    var ratio: Double
    /// All peers, in the same way.
    var peers: [Double]
  }

  private static let left = 370.0
  private static let width = 480.0
  private static let lineHeight = 24.0
  private static let top = 64.0
  /// The axis, in powers of two.
  private static let powers = -6...4

  private var bars: [Bar] {
    report.rows.compactMap { row in
      let figures = row.engines.mapValues(\.figure.median)
      guard let own = figures[EngineName.tidemark.rawValue], own > 0, let best = row.bestPeer,
        let value = figures[best], value > 0, row.unit != "x"
      else { return nil }
      func ratio(_ peer: Double) -> Double { row.moreIsBetter ? own / peer : peer / own }
      let peers = EngineName.allCases.filter { $0 != .tidemark && $0 != .empty }.compactMap {
        figures[$0.rawValue].map(ratio)
      }
      return Bar(row: row, engine: best, ratio: ratio(value), peers: peers)
    }
  }

  /// Where a ratio stands on the axis.
  private func place(_ ratio: Double) -> Double {
    let low = Double(Self.powers.lowerBound)
    let high = Double(Self.powers.upperBound)
    let power = min(max(log2(ratio), low), high)
    return Self.left + (power - low) / (high - low) * Self.width
  }

  func text() -> String {
    let bars = bars
    let height = Self.top + Double(bars.count) * Self.lineHeight + 40
    let all = Self.left + Self.width + 150
    var lines = [
      """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(number(all)) \(number(height))" \
      width="\(number(all))" height="\(number(height))" font-family="sans-serif" font-size="12">
      """,
      #"<rect width="100%" height="100%" fill="white"/>"#,
      label(16, 24, "Tidemark beside other engines: how many times as good", size: 15),
      label(
        16, 42,
        "\(report.n) records; bars: to the best peer; dots: to each peer; right of 1 is better"),
    ]
    for power in Self.powers { lines.append(grid(power, height)) }
    for (index, bar) in bars.enumerated() {
      lines += draw(bar, Self.top + Double(index) * Self.lineHeight + 8)
    }
    lines.append("</svg>")
    return lines.joined(separator: "\n") + "\n"
  }

  private func grid(_ power: Int, _ height: Double) -> String {
    let x = number(place(pow(2, Double(power))))
    let text = power >= 0 ? "\(1 << power)x" : "1/\(1 << -power)"
    let color = power == 0 ? "#333333" : "#dddddd"
    return """
      <line x1="\(x)" y1="\(number(Self.top))" x2="\(x)" y2="\(number(height - 30))" \
      stroke="\(color)"/>
      <text x="\(x)" y="\(number(height - 12))" text-anchor="middle" fill="#555555">\(text)</text>
      """
  }

  private func draw(_ bar: Bar, _ y: Double) -> [String] {
    let from = min(place(1), place(bar.ratio))
    let length = max(1, abs(place(bar.ratio) - place(1)))
    let color = bar.ratio >= 1 ? "#2a7f62" : "#c2573a"
    var lines = [
      label(16, y + 11, "\(bar.row.id)  \(bar.row.title)"),
      """
      <rect x="\(number(from))" y="\(number(y))" width="\(number(length))" height="14" \
      fill="\(color)"/>
      """,
      label(
        Self.left + Self.width + 12, y + 11,
        "\(Figures.short(bar.ratio))x \(bar.engine)"),
    ]
    for peer in bar.peers {
      lines.append(
        """
        <circle cx="\(number(place(peer)))" cy="\(number(y + 7))" r="3" fill="#ffffff" \
        stroke="#333333"/>
        """)
    }
    return lines
  }

  private func label(_ x: Double, _ y: Double, _ text: String, size: Int = 12) -> String {
    let safe = text.replacingOccurrences(of: "&", with: "&amp;")
      .replacingOccurrences(of: "<", with: "&lt;")
    return """
      <text x="\(number(x))" y="\(number(y))" font-size="\(size)" fill="#222222">\(safe)</text>
      """
  }

  private func number(_ value: Double) -> String { Figures.fixed(value, 1) }
}
