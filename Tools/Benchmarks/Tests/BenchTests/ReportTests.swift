import Foundation
import Testing

@testable import tidemark_bench

@Suite("The report")
struct ReportTests {
  @Test("quantiles of times are right to a hundredth")
  func quantiles() {
    var times = Histogram()
    for time in 1...100_000 { times.add(UInt64(time)) }
    for part in [0.01, 0.5, 0.9, 0.999] {
      let wanted = part * 100_000
      #expect(abs(Double(times.quantile(part)) - wanted) <= wanted / 100)
    }
    #expect(times.quantile(1) == 100_000)
    #expect(times.largest == 100_000)
  }

  @Test("a target is held against the median, and the right way round")
  func verdicts() throws {
    var results = Results(n: 1000)
    for value in [90.0, 100, 500] { results.add(Measure("P1", value), .tidemark) }
    results.add(Measure("P1", 60), .rocksdbZstd)
    results.add(Measure("P1", 80), .lmdb)
    results.add(Measure("P5", 0.3), .tidemark)
    results.add(Measure("P5", 0.5), .tkrzw)
    let rows = Row.all(n: 1000)
    func verdict(_ id: String) throws -> Target.Verdict {
      let row = try #require(rows.first { $0.id == id })
      return try #require(row.targets.first?.verdict(row, results))
    }
    let load = try verdict("P1")
    #expect(!load.isMet && abs(load.value - 100.0 / 60) < 1e-9)
    #expect(try verdict("P5").isMet)
    let row = try #require(rows.first { $0.id == "P1" })
    #expect(results.bestPeer(row)?.engine == .lmdb)
  }

  @Test("a row brings along what has to be done before it, and no more")
  func needed() {
    #expect(Stage.needed(for: ["P6"], .lmdb) == [.loadLabels, .churn, .compact, .small])
    #expect(Stage.needed(for: ["P1"], .tidemark) == [.load])
    #expect(
      Stage.needed(for: ["P9"], .sqlite) == [.load, .buffered, .durable, .kill, .reopen])
    #expect(Stage.needed(for: ["P17"], .tidemark) == [.history])
    #expect(Stage.needed(for: ["P13d"], .leveldb) == [])
  }

  @Test("every row is measured by a stage, and every stage's rows are printed")
  func rows() {
    let printed = Set(Row.all(n: 1000).map(\.id))
    #expect(Set(Stage.allCases.flatMap(\.rows)) == printed)
    #expect(printed.isSuperset(of: GrowthReport.rows))
  }

  @Test("figures have three digits that count")
  func figures() {
    #expect(Figures.short(1234.5) == "1235")
    #expect(Figures.short(0.0456) == "0.046")
    #expect(Figures.short(12.34) == "12.3")
    #expect(Figures.short(3) == "3")
    #expect(Figures.fixed(-1.005, 1) == "-1.0")
    #expect(Figures.grouped(1234567) == "1,234,567" && Figures.grouped(12.34) == "12.3")
  }

  private static let measured = {
    var results = Results(n: 1000)
    let medians: [(row: String, own: Double, sqlite: Double)] = [
      ("P3", 10, 5), ("P5", 0.5, 6), ("P7m", 75, 30),
    ]
    for (row, own, sqlite) in medians {
      results.add(Measure(row, own), .tidemark)
      results.add(Measure(row, sqlite), .sqlite)
    }
    results.add(Measure("P5", 2.5), .leveldb)
    return JSONReport(results, valueBytes: 250)
  }()

  @Test("the picture names engines and units, and lets the page shine through")
  func picture() {
    let text = SVGReport(report: Self.measured).text()
    for part in [">Tidemark<", ">SQLite<", ">LevelDB<", "durable puts, one writer", "thousand/s ↑"]
    {
      #expect(text.contains(part), "\(part)")
    }
    #expect(!text.contains("100%") && text.contains("prefers-color-scheme: dark"))
    // The other engine is far better, Tidemark far better, and nothing was measured.
    #expect(text.contains(#"class="far-better"/>"#) && text.contains(#"class="far-worse"/>"#))
    #expect(text.contains(">–<"))
  }

  @Test("the small picture says who is better, and gives figures with their units")
  func smallPicture() {
    let text = SmallPicture(report: Self.measured).text()
    for part in ["Tidemark 2.0× as fast", "Tidemark 12× as fast", "SQLite 2.5× smaller"] {
      #expect(text.contains(part), "\(part)")
    }
    for part in [">10,000 / s<", ">0.500 µs<", ">75 MB<"] {
      #expect(text.contains(part), "\(part)")
    }
  }
}
