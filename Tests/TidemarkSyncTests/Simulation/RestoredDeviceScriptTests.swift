import Testing
import TidemarkSyncTestKit

/// Failures that the simulator has found where a device is restored to before it had read anything.
@Suite("Restored devices")
struct RestoredDeviceScriptTests {
  private func run(_ script: String) throws {
    try SyncSimulation(SyncScript(parsing: script)).run()
  }

  @Test("a lease says nothing of a store that is restored to before it had read anything")
  func leaseOfLaterLife() throws {
    try run(
      """
      world 1040095 3 1 262144 2
      write d1 : edit j3 8 0 -
      direction d0 1
      exchange d1 4
      write d1 : put c22 9 0 -
      write d0 : put s10 11 0 -
      exchange d0 4
      exchange d1 2
      write d1 : delete s10
      exchange d1 2
      giveUp d1
      exchange d1 1
      backUp d0
      advance 3019451
      dropHistory
      resolver d0 4
      exchange d0 8
      restore d0 679
      """)
  }

  @Test("a store that has sent and read nothing compares under its new name")
  func renamedBeforeReading() throws {
    try run(
      """
      world 1040095 3 1 262144 2
      write d0 : bad c0 1 0 -
      write d1 : edit j3 8 0 -
      direction d0 1
      exchange d1 4
      write d0 : put s10 11 0 -
      exchange d0 4
      backUp d0
      advance 3019451
      write d0 : delete c0
      exchange d0 8
      dropHistory
      restore d0 679
      """)
  }
}
