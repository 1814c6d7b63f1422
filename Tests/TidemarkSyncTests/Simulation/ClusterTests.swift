import Testing
@_spi(Campaigns) import TidemarkSyncTestKit

@Suite("Servers that share a database of SQL")
struct ClusterTests {
  @Test(
    "a batch counts once and nobody reads wrongly, whatever calls interleave and primaries fail",
    arguments: 1...60 as ClosedRange<UInt64>)
  func holds(seed: UInt64) throws { try ClusterSimulation(seed: seed).run() }

  @Test("a feed that loses its end and gets it back, or not, within one call is read right")
  func endGoesAndComes() throws {
    for seed: UInt64 in [40_436, 40_718] { try ClusterSimulation(seed: seed).run() }
  }

  @Test("a few seeds have calls, failovers, compactions and deaths of servers")
  func happens() throws {
    let report = try (1...5).reduce(SyncSimulationReport()) {
      try $0 + ClusterSimulation(seed: $1).run()
    }
    for name in ["calls", "failovers", "late batches", "compactions", "deaths of servers"] {
      #expect(report.counts[name, default: 0] > 0, "\(name)")
    }
  }

  @Test("two runs of one seed interleave calls alike", arguments: [1, 2, 3] as [UInt64])
  func repeats(seed: UInt64) throws {
    #expect(try ClusterSimulation(seed: seed).run() == ClusterSimulation(seed: seed).run())
  }
}
