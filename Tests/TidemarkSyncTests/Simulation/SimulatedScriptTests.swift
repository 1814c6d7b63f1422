import Testing
import TidemarkSyncTestKit

/// What the simulator once complained about although nothing was wrong.
@Suite("What the simulator lets pass")
struct SimulatedScriptTests {
  private func run(_ script: String) throws {
    try SyncSimulation(SyncScript(parsing: script)).run()
  }

  @Test("a write that won unseeing by policy gives way after a restore if its resolver says so")
  func givesWay() throws {
    try run(
      """
      world 4719 2 7 300
      policy 0 1
      resolver d1 1
      exchange d1 2
      exchange d0 2
      write d0 : edit j4 2105 0 -
      write d1 : same j4 2112 0 -
      exchange d0 1
      backUp
      exchange d1 1
      restore 301
      """)
  }
}
