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

  @Test("a resolver that keeps what came before a restored value lets that come back")
  func keptBeforeRestored() throws {
    try run(
      """
      world 3401323 4 4000 262144 3
      write d0 : put k7 4 0 -
      exchange d0 2
      call d0
      deliver 647
      backUp
      write d1 : put k7 54 0 -
      clone d1
      anew
      exchange d1 4
      exchange d0 8
      clone d1
      exchange d839 2
      write d2 : put k7 113 0 -
      write d1 : put k7 114 0 -
      exchange d1 4
      restore 352
      giveUp d0
      exchange d0 7
      exchange d2 1
      exchange d2 2
      dropHistory
      """)
  }
}
