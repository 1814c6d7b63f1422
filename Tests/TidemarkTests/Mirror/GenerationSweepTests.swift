import Testing
import TidemarkTestKit

@Suite("Crashes while a collection is brought up to date")
struct GenerationSweepTests {
  @Test("no crash shows a mixture of two generations or loses what was fetched", arguments: 1...6)
  func sweep(seed: Int) throws {
    let report = try GenerationSweep(seed: UInt64(seed)).run(every: 4)
    #expect(report.crashes > 20 && report.between > 0, "seed \(seed)")
  }

  @Test("a sweep repeats call by call")
  func repetition() throws {
    let reports = try (0..<2).map { _ in try GenerationSweep(seed: 7).run(every: 9) }
    #expect(reports[0].traceHash == reports[1].traceHash && reports[0].crashes > 0)
  }
}
