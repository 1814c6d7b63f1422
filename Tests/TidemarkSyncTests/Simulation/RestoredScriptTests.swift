import Testing
import TidemarkSyncTestKit

/// Failures that the simulator has found with peers that were restored from older copies.
@Suite("A feed that was restored")
struct RestoredScriptTests {
  private func run(_ script: String) throws {
    try SyncSimulation(SyncScript(parsing: script)).run()
  }

  @Test("own deletes that a restored feed has again count, whatever stood there since")
  func deletesAgain() throws {
    try run(
      """
      world 40239 4 4000 262144
      backUp
      write d1 : edit j0 7 8 a
      exchange d1 4
      backUp
      exchange d3 1
      call d3
      deliver 368
      deliver 27
      write d3 : delete j0
      exchange d3 1
      backUp
      write d0 : same j0 47 0 -
      exchange d0 4
      write d3 : put h4 56 0 -
      validator 0
      exchange d3 2
      restore 482
      scope d3 1
      """)
  }

  @Test("a change that somebody brings back is known by its time wherever it was read")
  func timeKept() throws {
    try run(
      """
      world 15963 3 4000 262144
      backUp
      exchange d1 2
      backUp d1
      restore 286
      exchange d0 2
      write d0 : bad c9 22 0 -
      backUp d0
      exchange d0 1
      restore d0 706
      restore d1 213
      write d0 : delete c9
      exchange d1 3
      restore 165
      """)
  }

  @Test("a batch of a former life that comes late does not count in a restored feed")
  func formerLife() throws {
    try run(
      """
      world 3239 3 4000 262144
      write d0 : put h3 8 0 - ; same c25 9 0 -
      backUp
      write d2 : put c19 1037 0 -
      exchange d0 4
      exchange d2 4
      backUp
      backUp d2
      write d2 : delete h3
      exchange d2 1
      backUp
      write d2 : put s1055 1056 0 -
      call d2
      restore d2 535
      restore 249
      exchange d2 8
      write d2 : put s1104 1105 0 -
      call d2
      deliver 1000000
      """)
  }

  @Test("a copy under the same name is noticed also when it has sent fewer batches")
  func fewerBatches() throws {
    try run(
      """
      world 74739 2 20 262144
      backUp
      backUp d0
      write d0 : same h3 32 0 -
      exchange d0 5
      write d0 : put l4 40 0 -
      exchange d0 1
      clone d0
      restore 990
      restore d0 757
      exchange d1 1
      write d0 : put l2 51 0 -
      write d1 : put h3 52 0 -
      exchange d1 2
      """)
  }

  @Test("a change that waits for the user waits no more once a restored feed has it")
  func decidedThere() throws {
    try run(
      """
      world 7219 3 20 4000
      backUp
      backUp
      resolver d0 5
      write d0 : put c20 41 0 -
      write d2 : put c20 44 0 -
      exchange d2 4
      backUp
      restore 853
      backUp
      exchange d0 3
      backUp
      backUp
      giveUp d2
      exchange d2 8
      backUp
      restore 184
      write d0 : same j0 1120 0 -
      call d0
      deliver 229
      deliver 811
      exchange d0 2
      exchange d0 2
      call d0
      deliver 74
      deliver 336
      call d0
      deliver 720
      restore 739
      duplicate 506
      """)
  }

  @Test("own batches of a former life of the feed are not taken for those of a copy")
  func ownBatches() throws {
    try run(
      """
      world 5739 4 20 4000
      fill d3 1 19
      write d2 : same h1 1018 0 -
      exchange d3 3
      backUp
      durableWrite d2 : put c9 1027 0 -
      call d2
      deliver 304
      backUp
      deliver 575
      write d2 : put c12 1037 0 -
      exchange d2 2
      write d2 : put c28 1039 0 -
      write d1 : put c12 1045 0 -
      exchange d1 4
      backUp
      exchange d2 2
      backUp
      restore 653
      reopen d2
      exchange d2 4
      write d1 : put c9 1079 0 -
      exchange d1 4
      exchange d1 4
      restore 1000000
      """)
  }

  @Test("a change to be brought back that is in the feed keeps its position there")
  func broughtBack() throws {
    try run(
      """
      world 5739 4 20 4000
      fill d3 1 19
      exchange d3 4
      backUp
      write d3 : put c7 1024 0 -
      backUp
      write d2 : put c12 1037 0 -
      exchange d3 1
      backUp
      exchange d2 4
      backUp
      durableWrite d3 : put c12 1053 0 -
      giveUp d3
      restore 653
      reopen d2
      write d0 : put c21 1061 0 -
      exchange d3 1
      exchange d3 3
      exchange d0 3
      exchange d1 4
      exchange d2 8
      exchange d0 3
      write d3 : edit j0 1085 0 -
      write d1 : put c12 1086 0 -
      restore 783
      exchange d1 8
      exchange d3 1
      exchange d1 1
      restore 1000000
      exchange d1 8
      exchange d3 8
      """)
  }

  @Test("a change is at odds with nothing that stands before what it was made upon")
  func behind() throws {
    try run(
      """
      world 17419 3 3 262144
      backUp
      backUp
      backUp
      write d0 : edit j1 43 0 - ; bad l3 44 0 -
      exchange d0 4
      durableWrite d0 : put c11 52 0 - ; put l3 53 0 -
      exchange d0 1
      exchange d1 4
      backUp
      backUp
      backUp
      write d1 : put h4 101 0 -
      restore 714
      backUp
      exchange d1 8
      exchange d2 4
      backUp
      write d2 : delete l3
      exchange d2 1
      backUp
      restore 454
      """)
  }

  @Test("a restored feed is read again though the lease has run out meanwhile")
  func leaseMeanwhile() throws {
    try run(
      """
      world 26647 3 7 262144
      write d1 : put l1 20 0 -
      exchange d1 5
      write d1 : delete l1
      exchange d1 1
      write d1 : put l2 30 0 -
      backUp
      advance 3269093
      restore 30
      dropHistory
      exchange d1 8
      backUp
      backUp
      restore 489
      reopen d1
      advance 2814431
      call d1
      deliver 905
      write d0 : put l2 114 0 -
      restore 442
      deliver 559
      """)
  }

  @Test("own operations outside of the scope are known again in a restored feed")
  func outsideScope() throws {
    try run(
      """
      world 38151 3 3 262144
      backUp
      write d0 : put c8 15 0 -
      exchange d0 4
      write d0 : put s1031 1032 0 -
      exchange d0 1
      write d2 : put c8 1051 57 a
      backUp
      restore 686
      scope d0 1
      exchange d2 4
      exchange d0 8
      restore 819
      """)
  }

  @Test("a key that left the scope by an own operation is told when a restored feed is read")
  func leftByOwn() throws {
    try run(
      """
      world 29599 3 4000 4000
      backUp
      write d0 : put j2 54 0 -
      write d2 : put j2 55 26 a
      exchange d2 4
      backUp
      write d2 : edit j2 69 0 -
      exchange d2 1
      backUp
      backUp
      validator 1
      exchange d0 3
      write d2 : delete j2
      scope d2 1
      exchange d2 6
      restore 123
      """)
  }

  @Test("a batch that came after the last mark may be from a copy, and is read")
  func afterMark() throws {
    try run(
      """
      world 46335 4 4000 262144
      durableWrite d1 : edit j0 1068 23 a
      exchange d1 4
      clone d1
      backUp
      exchange d2 1
      scope d1 1
      call d1
      deliver 430
      write d1 : delete j0
      restore 423
      deliver 933
      call d1
      exchange d1 1
      write d839 : put s1126' 1128 12 ab
      exchange d839 2
      deliver 1000000
      deliver 1000000
      call d1
      deliver 900
      deliver 655
      call d1
      deliver 608
      deliver 415
      """)
  }

  @Test("a change not worth sending to a peer that had lost its key is, once a later copy has it")
  func leftAfterwards() throws {
    try run(
      """
      world 60895 4 3 300
      scope d0 1
      write d0 : put h0 13 49 a
      backUp
      backUp
      exchange d0 4
      backUp
      durableWrite d0 : put h0 76 0 - ; put c15 77 48 a
      giveUp d0
      backUp
      restore 424
      exchange d0 8
      restore 438
      """)
  }

  @Test("a delete of what a restored peer had lost counts once a later copy has it again")
  func deletedAfterwards() throws {
    try run(
      """
      world 65651 4 3 262144
      backUp
      backUp
      backUp
      durableWrite d3 : put c16 14 0 -
      write d3 : put h1 15 0 -
      backUp
      write d3 : put c0 16 0 -
      exchange d3 4
      backUp
      write d3 : put c28 44 0 -
      backUp
      write d3 : put h1 53 0 -
      backUp
      exchange d3 1
      backUp
      write d3 : delete h1
      restore 872
      exchange d3 6
      restore 71
      exchange d3 1
      """)
  }
}
