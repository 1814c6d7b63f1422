import Testing
import TidemarkSyncTestKit

/// Scripts that the simulator once complained about although nothing was wrong.
@Suite("Scripts that the simulator lets pass")
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

  @Test(
    """
    what was made upon history that was dropped gives way after a restore, if its resolver says so
    """)
  func historyDropped() throws {
    try run(
      """
      world 8543 3 1 300
      write d2 : put l3 50 0 -
      exchange d2 4
      backUp
      restore 1000000
      exchange d1 2
      durableWrite d1 : put l3 58 0 -
      exchange d1 1
      dropHistory d1
      restore 274
      resolver d1 1
      """)
  }

  @Test("deletes of what a replica has sent and not read yet are kept for it")
  func sentAndNotRead() throws {
    try run(
      """
      world 253 3 3 262144
      write d1 : bad c16 8 0 - ; put c5 9 0 -
      write d1 : put l0 1054 0 -
      exchange d1 3
      write d0 : same l0 1073 0 -
      write d2 : put l0 1076 0 -
      call d0
      deliver 389
      deliver 376
      write d1 : delete l0
      call d1
      call d0
      deliver 768
      deliver 414
      deliver 797
      dropHistory
      exchange d0 5
      write d0 : delete l0
      """)
  }

  @Test("either of two lives of a feed may be the one whose content stays")
  func differentLives() throws {
    try run(
      """
      world 10987 3 7 262144
      write d2 : put h0 5 0 -
      backUp d2
      write d1 : put h0 11 0 -
      backUp
      exchange d2 3
      backUp
      backUp
      restore 645
      exchange d1 3
      backUp
      backUp
      backUp
      backUp
      backUp
      backUp
      restore 622
      restore d2 788
      exchange d2 4
      backUp
      backUp
      restore 280
      """)
  }

  @Test("a delete that was out of scope may go with the history")
  func outOfScope() throws {
    try run(
      """
      world 8493 3 4000 262144
      write d0 : put c24 2013 0 -
      exchange d0 5
      exchange d1 2
      scope d1 1
      write d1 : put l1 2085 6 a ; put c24 2087 0 -
      exchange d1 4
      giveUp d1
      write d1 : delete c24
      call d1
      dropHistory d1
      deliver 58
      deliver 532
      write d1 : put l1 2115 0 -
      call d1
      scope d1 0
      """)
  }

  @Test("a key a restored server has lost need not come back from where it is out of scope now")
  func scopeNarrowed() throws {
    try run(
      """
      world 12799 2 4000 262144
      exchange d0 2
      backUp
      write d0 : put c18 66 0 -
      exchange d0 1
      restore 957
      scope d0 3
      """)
  }

  @Test("a key that others have deleted is not known any more, also once a device was opened again")
  func openedAgain() throws {
    try run(
      """
      world 4956 2 1 300
      write d1 : put l2 7 0 -
      exchange d1 3
      write d1 : delete l2
      exchange d1 1
      exchange d0 4
      write d0 : edit j1 30 0 -
      exchange d0 1
      reopen d0
      write d0 : same l2 56 0 -
      dropHistory d0
      write d0 : delete l2
      write d1 : put l2 100 0 -
      """)
  }

  @Test("a hello that makes a batch durable is not the last of the calls")
  func madeDurableByHello() throws {
    try run(
      """
      world 3915304 2 4000 262144 3
      call d0
      write d1 : put c19 61 0 -
      exchange d1 1
      exchange d0 1
      exchange d1 2
      exchange d0 1
      write d1 : put c19 99 0 -
      call d1
      deliver 167
      """)
  }

  @Test("a copy of a device takes a delete by another at the very same time for its own")
  func deletedAtTheSameTime() throws {
    try run(
      """
      world 4015190 3 4000 262144 3
      write d2 : put s1 2 0 -
      exchange d2 4
      exchange d0 2
      write d0 : delete s1
      giveUp d2
      exchange d2 2
      call d0
      durableWrite d2 : put l1 4 0 -
      call d1
      write d2 : put c3 5 0 -
      call d2
      durableWrite d1 : edit j3 6 0 -
      deliver 179
      write d1 : put l4 12 0 -
      deliver 866
      write d2 : delete c3
      write d0 : put l0 13 0 -
      exchange d1 4
      write d1 : put h0 31 0 -
      exchange d2 1
      durableWrite d1 : edit j3 32 0 -
      write d1 : edit j0 35 0 -
      durableWrite d1 : bad l0 36 0 - ; delete c3
      call d1
      clone d1
      write d0 : put c3 138 0 -
      exchange d0 4
      """)
  }
}
