import Testing
import TidemarkSyncTestKit

/// Scripts in which the oracle took a device to know more than it can.
@Suite("Knowledge of simulated devices")
struct OracleScriptTests {
  private func run(_ script: String) throws {
    try SyncSimulation(SyncScript(parsing: script)).run()
  }

  @Test("a page that went with the power is not known")
  func lostPage() throws {
    try run(
      """
      world 60318 3 20 4000
      call d0
      call d1
      drop 661
      call d2
      deliver 398
      deliver 447
      reopen d0
      write d0 : put c8 8 0 -
      fuse d0 19 979168
      exchange d1 2
      exchange d0 3
      write d0 : put c15 18 0 -
      deliver 458
      deliver 293
      exchange d0 2
      durableWrite d0 : put l2 21 0 -
      write d1 : edit j0 25 0 -
      exchange d0 1
      call d0
      exchange d1 1
      deliver 790
      deliver 23
      reach d0 5
      write d0 : edit j0 1082 0 -
      write d0 : delete j0
      """)
  }

  @Test("a page that went with the power before a new reach is not known")
  func lostPageOfReach() throws {
    try run(
      """
      world 30188 3 4000 262144
      exchange d2 2
      write d1 : put c1 49 0 - ; put l1 51 0 -
      write d2 : put l1 85 0 -
      call d1
      fuse d1 10 477738
      call d2
      deliver 133
      write d1 : delete c1
      write d1 : bad l0 91 0 -
      deliver 656
      deliver 840
      deliver 1
      write d1 : put c15 94 0 -
      durableWrite d1 : put c18 95 0 -
      call d1
      deliver 551
      reach d1 5
      deliver 818
      write d1 : delete l1
      """)
  }

  @Test("a value that went with the power leaves a delete that nobody need hear of")
  func lostValue() throws {
    try run(
      """
      world 55308 2 4000 262144
      write d1 : put l4 36 2 ab
      exchange d0 2
      reach d0 2
      write d0 : put h2 43 0 -
      fuse d0 15 268095
      exchange d1 5
      write d0 : put c26 46 0 -
      write d0 : put l4 47 0 -
      write d0 : delete h2
      call d0
      deliver 625
      deliver 222
      call d0
      duplicate 591
      write d0 : put c29 50 0 -
      deliver 449
      call d0
      deliver 435
      write d0 : put c18 58 0 -
      deliver 319
      exchange d0 1
      reach d0 3
      exchange d0 2
      exchange d0 4
      durableWrite d0 : delete l4
      exchange d0 2
      reopen d0
      """)
  }

  @Test("a key that left while it held a refused change is not known")
  func left() throws {
    try run(
      """
      world 30918 3 20 262144
      exchange d0 2
      reach d2 1
      exchange d2 2
      write d0 : put h4 51 50 a
      exchange d0 1
      write d2 : put h4 62 0 -
      exchange d1 2
      call d2
      deliver 743
      durableWrite d1 : bad h4 65 0 -
      call d1
      deliver 828
      deliver 573
      call d2
      deliver 723
      deliver 352
      deliver 128
      write d2 : delete h4
      """)
  }

  @Test("a delete of another device with the same number is another delete")
  func sameNumber() throws {
    try run(
      """
      world 46735 3 4000 262144
      exchange d2 1
      write d1 : put c3 4 0 -
      write d2 : put c29 5 0 -
      exchange d1 3
      write d1 : put c10 7 0 -
      durableWrite d0 : put l3 8 0 -
      exchange d0 3
      scope d2 3
      write d1 : put c3 9 0 -
      durableWrite d2 : bad l3 10 0 -
      durableWrite d2 : put c17 11 0 -
      write d1 : put l2 15 0 -
      write d2 : put c7 16 0 -
      write d1 : put c9 17 0 -
      write d1 : put c1 18 0 -
      exchange d1 2
      durableWrite d1 : delete l2 ; put h1 19 0 -
      durableWrite d2 : put l2 22 0 -
      call d1
      deliver 788
      write d2 : put c7 24 0 - ; put l2 25 0 - ; put l1 26 0 - ; edit j0 27 0 -
      exchange d2 2
      write d2 : delete h1
      write d2 : put c21 30 0 -
      exchange d2 1
      write d2 : delete l2
      call d2
      reopen d2
      """)
  }

  @Test("a feed that is read again after a power cut is judged by the policies of its time")
  func formerPolicy() throws {
    try run(
      """
      world 49457 3 3 300
      backUp d1
      policy 0 1
      write d0 : put j3 5 0 -
      exchange d0 4
      scope d1 2
      advance 3390923
      durableWrite d1 : edit j3 7 52 a ; put c29 9 2002 a ; put h3 11 50 a
      exchange d1 4
      policy 0 0
      restore d1 272
      fuse 10 827294
      write d2 : put l4 26 0 -
      exchange d2 1
      exchange d2 4
      exchange d1 6
      """)
  }

  @Test("a verdict on a batch that was settled tells nothing new")
  func settled() throws {
    try run(
      """
      world 3837 3 3 262144
      direction d0 1
      write d1 : edit j0 41 0 -
      exchange d0 1
      exchange d1 4
      write d0 : put s53 54 0 -
      advance 2678400
      exchange d0 8
      write d0 : delete j0
      backUp
      call d0
      exchange d0 2
      restore 22
      deliver 725
      dropHistory
      """)
  }

  @Test("a key that left while it held a change of a former feed is known")
  func leftAnew() throws {
    try run(
      """
      world 61597 3 4000 4000
      durableWrite d0 : put c28 22 57 ab
      write d2 : put l3 23 0 -
      exchange d0 3
      exchange d2 5
      exchange d1 2
      scope d2 2
      write d1 : put l4 36 0 -
      anew
      write d0 : put c28 46 0 -
      exchange d1 7
      exchange d0 8
      exchange d2 6
      durableWrite d2 : put c28 79 32 a
      """)
  }

  @Test("a key that has left is told of though the entry that it left with was dropped")
  func leftWithDropped() throws {
    try run(
      """
      world 3383 3 7 300 1
      write d1 : edit j3 11 35 ab
      exchange d1 5
      scope d0 4
      exchange d0 2
      exchange d2 2
      write d2 : edit j3 121 0 -
      call d2
      write d2 : edit j3 1149 0 -
      exchange d2 3
      dropHistory
      """)
  }

  @Test("a batch that a twice restored peer has again does not keep what may not be read (6778)")
  func reachOfLostBatch() throws {
    try run(
      """
      world 6778 3 1 4000
      backUp
      write d0 : same l0 19 0 -
      exchange d0 3
      backUp
      reach d0 2
      restore 832
      kill d0 4 815069
      exchange d0 3
      restore 211
      """)
  }

  @Test("a key whose leaving was dropped is told of although a page ended before it (3031)")
  func leftBetweenPages() throws {
    try run(
      """
      world 3031 3 3 4000
      write d2 : put h2 14 59 ab ; put c2 15 0 - ; put k3 18 49 ab
      write d2 : edit j4 20 3 a
      write d2 : put h4 23 15 ab
      exchange d2 4
      scope d0 4
      write d1 : edit j1 81 10 ab
      write d1 : put k3 95 0 -
      write d2 : put k3 97 0 -
      exchange d2 1
      exchange d1 2
      exchange d0 2
      exchange d1 2
      dropHistory
      """)
  }

  @Test("a resolver that is asked once its device may reach further has the last word")
  func askedLate() throws {
    try run(
      """
      world 505846 3 7 262144
      backUp
      write d0 : put l3 15 0 -
      exchange d0 3
      exchange d2 3
      reach d0 5
      restore 525
      write d2 : same h0 22 0 -
      exchange d2 7
      exchange d1 2
      backUp
      write d1 : bad l3 47 0 -
      exchange d1 1
      restore 221
      """)
  }

  @Test("a change that a twice restored server has dropped again is not known to count")
  func droppedSinceRestored() throws {
    try run(
      """
      world 861427 3 7 4000 1
      write d1 : put k2 11 0 - ; put l1 12 0 - ; put l0 13 0 - ; put c12 14 0 - ; put k4 15 0 -
      write d0 : edit j1 17 0 -
      fill d0 1 29
      write d1 : put c28 1021 0 -
      backUp
      call d2
      deliver 662
      duplicate 195
      write d2 : put h0 1027 0 -
      exchange d0 8
      policy 0 1
      exchange d1 8
      advance 2678400
      write d0 : put h0 1030 0 -
      drop 648
      call d2
      deliver 912
      deliver 568
      exchange d2 2
      exchange d2 8
      backUp
      write d1 : put s1033' 1034 0 -
      restore 84
      exchange d1 4
      backUp
      exchange d1 8
      exchange d0 2
      exchange d2 2
      exchange d0 16
      restore 982
      exchange d0 8
      exchange d0 4
      dropHistory
      """)
  }

  @Test("an entry that a comparison leaves to the feed is not known before")
  func leftToFeed() throws {
    try run(
      """
      world 2424730 2 3 262144
      durableWrite d0 : put l4 4 0 -
      exchange d0 4
      backUp d0
      write d0 : put c4 19 0 -
      exchange d0 1
      restore d0 116
      exchange d0 1
      write d0 : attach l3 54 0 -
      write d1 : put l3 64 0 -
      exchange d1 4
      exchange d0 3
      reach d0 5
      write d0 : delete l3
      """)
  }

  @Test("an entry that a comparison has found to be gone is not known from reading once more")
  func passedOver() throws {
    try run(
      """
      world 3206950 2 1 262144
      exchange d0 3
      write d0 : put c11 6 0 -
      call d0
      write d1 : edit j2 12 4 b
      exchange d1 3
      backUp d0
      write d0 : edit j2 24 0 -
      exchange d0 8
      reach d0 4
      restore d0 990
      exchange d0 7
      write d0 : edit j2 51 0 -
      write d0 : delete j2
      """)
  }
}
