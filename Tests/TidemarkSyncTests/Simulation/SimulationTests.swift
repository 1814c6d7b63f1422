import Testing
import TidemarkSyncTestKit

@Suite("Simulated replication")
struct SimulationTests {
  @Test(
    "nothing is lost, doubled or brought back, whatever befalls devices, server and network",
    arguments: 1...40 as ClosedRange<UInt64>)
  func holds(seed: UInt64) {
    do throws(SyncViolation) {
      try SyncSimulation(seed: seed).run()
    } catch {
      Issue.record("seed \(seed): \(SyncSimulation.shortest(error, attempts: 200))")
    }
  }

  @Test("the same seed does the same", arguments: [1, 2, 5, 6] as [UInt64])
  func repeats(seed: UInt64) throws {
    #expect(try SyncSimulation(seed: seed).run() == SyncSimulation(seed: seed).run())
  }

  @Test("a script is read back from its text", arguments: 1...8 as ClosedRange<UInt64>)
  func text(seed: UInt64) throws {
    let script = SyncScript(seed: seed)
    #expect(try SyncScript(parsing: "\(script)") == script)
  }
}
