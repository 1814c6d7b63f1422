/// The result for people.
struct TextReport {
  let results: Results

  private static let limitTexts = [
    ("memcpy", "memcpy", "GB/s"), ("write", "sequential write with a sync", "GB/s"),
    ("pread", "pread of 320 B from the page cache", "us"),
    ("sync", "fdatasync of 4 KiB into a prefilled file", "k/s"),
  ]

  func show() {
    showSettings()
    showLimits()
    for row in Row.all(n: results.n) { show(row) }
    showSummary()
    for failure in results.failures { print("FAILED: \(failure)") }
  }

  private func showSettings() {
    print("\nSettings")
    for engine in EngineName.allCases {
      guard let settings = results.settings(engine) else { continue }
      print("  \(engine.rawValue): \(settings.joined(separator: "; "))")
    }
  }

  private func showLimits() {
    print("\nThis machine, in the same run")
    for (name, title, unit) in Self.limitTexts {
      guard let figure = results.limitStatistics[name] else { continue }
      print("  \(title): \(text(figure)) \(unit)")
    }
  }

  private func text(_ figure: Statistics) -> String {
    let range = "(\(Figures.short(figure.smallest))..\(Figures.short(figure.largest)))"
    return Figures.short(figure.median) + (figure.runs > 1 ? " \(range)" : "")
  }

  private func show(_ row: Row) {
    let engines = results.engines(row.id)
    guard !engines.isEmpty else { return }
    let direction = row.moreIsBetter ? "more is better" : "less is better"
    print("\n\(row.id)  \(row.title) (\(row.unit), \(direction))")
    for engine in engines {
      guard let figure = results.statistics(row.id, engine) else { continue }
      var line = "  " + Figures.padded(engine.rawValue, 14) + Figures.padded(text(figure), 28)
      if let processor = results.processor(row.id, engine) {
        line += Figures.padded("\(Figures.short(processor)) us CPU", 16)
      }
      let more = results.more(row.id, engine).sorted { $0.key < $1.key }
      line += more.map { "\($0.key) \(Figures.short($0.value))" }.joined(separator: ", ")
      print(line)
    }
  }

  private func showSummary() {
    print("\n| Row | Work | Tidemark | best peer | of it | machine | target | is | met |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in Row.all(n: results.n) {
      guard let own = results.median(row.id, .tidemark) else { continue }
      let best = results.bestPeer(row)
      let verdicts = row.targets.compactMap { $0.verdict(row, results) }
      var limit = ""
      if let name = row.limit, let figure = results.limit(name), figure > 0 {
        limit = Figures.short(own / figure) + "x"
      }
      let cells = [
        row.id, row.title, "\(Figures.short(own)) \(row.unit)",
        best.map { "\($0.engine.rawValue) \(Figures.short($0.value))" } ?? "",
        best.map { $0.value > 0 ? Figures.short(own / $0.value) + "x" : "" } ?? "", limit,
        verdicts.map(\.text).joined(separator: ", "),
        verdicts.map { Figures.short($0.value) }.joined(separator: ", "),
        verdicts.map { $0.isMet ? "yes" : "NO" }.joined(separator: ", "),
      ]
      print("| " + cells.joined(separator: " | ") + " |")
    }
  }
}
