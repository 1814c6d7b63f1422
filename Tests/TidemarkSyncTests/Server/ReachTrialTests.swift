import Testing
@_spi(Campaigns) import TidemarkSyncTestKit

@Suite("Calls with the names of somebody else")
struct ReachTrialTests {
  @Test(
    "no call with the names of somebody else tells a token what it does not reach",
    arguments: 1...12 as ClosedRange<UInt64>)
  func tellsNothing(seed: UInt64) throws {
    let report = try ReachTrial(seed: seed, calls: 400).run()
    // A trial of nothing but refusals would say nothing.
    for name in ["attach", "pull", "digest", "push", "values"] {
      #expect(report.counts[name + ", told something", default: 0] > 0, "seed \(seed): \(name)")
    }
    #expect(report.counts["the owner's changes judged", default: 0] > 0)
  }
}
