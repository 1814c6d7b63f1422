import Testing
import TidemarkTestKit

@Suite("Crashes while indexes are kept up")
struct IndexSweepTests {
  @Test("index rows match their objects after a crash at any file operation")
  func sweep() throws {
    var between = 0
    for seed in 1...6 {
      let report = try IndexSweep(seed: UInt64(seed)).run(every: 3)
      #expect(report.crashes > 20, "seed \(seed)")
      between += report.between
    }
    #expect(between > 0)
  }

  @Test("a sweep repeats call by call")
  func repetition() throws {
    let reports = try (0..<2).map { _ in try IndexSweep(seed: 7).run(every: 9) }
    #expect(reports[0].traceHash == reports[1].traceHash && reports[0].crashes > 0)
  }
}
