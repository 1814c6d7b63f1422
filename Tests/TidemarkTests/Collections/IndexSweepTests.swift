import Testing
import TidemarkTestKit

@Suite("Crashes while indexes are kept up")
struct IndexSweepTests {
  @Test("indexes and objects agree after a crash at any call", arguments: 1...6)
  func sweep(seed: Int) throws {
    let report = try IndexSweep(seed: UInt64(seed)).run(every: 3)
    #expect(report.crashes > 20 && report.between > 0, "seed \(seed)")
  }

  @Test("a sweep repeats call by call")
  func repetition() throws {
    let reports = try (0..<2).map { _ in try IndexSweep(seed: 7).run(every: 9) }
    #expect(reports[0].traceHash == reports[1].traceHash && reports[0].crashes > 0)
  }
}
