import Testing
import TidemarkSyncTestKit

/// Failures that the simulator has found where a log did not hold any more what the peer knew.
@Suite("Histories that a store has forgotten")
struct ForgottenScriptTests {
  private func run(_ script: String) throws {
    try SyncSimulation(SyncScript(parsing: script)).run()
  }

  @Test("a delete is sent though compaction has kept only the last of the touches before it")
  func touched() throws {
    try run(
      """
      world 60821 3 1 4000
      exchange d1 3
      write d1 : edit j1 7 0 -
      exchange d1 1
      exchange d0 2
      write d0 : touch j1
      write d0 : touch j1
      write d0 : edit j3 1059 0 -
      exchange d0 1
      dropHistory d0
      durableWrite d0 : delete j1
      """)
  }

  @Test("an own delete is kept until what stands before it in the feed was read")
  func unread() throws {
    try run(
      """
      world 26868 2 20 262144
      write d1 : put h3 71 0 -
      policy 0 1
      exchange d0 2
      write d0 : same h3 119 0 -
      call d0
      call d1
      exchange d1 4
      drop 483
      deliver 438
      deliver 892
      write d1 : delete h3
      call d1
      deliver 138
      deliver 876
      dropHistory d1
      """)
  }

  @Test("a key that lies within a wider scope is not taken for deleted")
  func widened() throws {
    try run(
      """
      world 27599 3 20 4000
      write d1 : edit j3 1039 0 -
      scope d2 4
      exchange d1 4
      backUp
      restore 1000000
      exchange d2 3
      write d0 : put c6 1053 0 -
      restore 859
      exchange d0 1
      write d2 : put c5 1056 0 -
      exchange d0 2
      exchange d2 6
      clone d2
      """)
  }

  @Test("a delete is sent when what it was made upon went with the history")
  func cutOff() throws {
    try run(
      """
      world 76397 2 3 300
      write d1 : edit j1 1013 0 -
      exchange d1 3
      exchange d0 2
      write d0 : put l2 1059 0 -
      write d0 : put l1 1061 0 - ; edit j3 1062 0 - ; put c9 1063 0 - ; put c25 1064 0 -
      scope d0 3
      call d0
      deliver 57
      duplicate 947
      write d0 : put c7 1073 0 -
      exchange d0 2
      write d0 : edit j1 1075 0 - ; put h2 1076 0 -
      call d0
      scope d0 5
      durableWrite d0 : put h1 1111 2098 - ; edit j1 1112 0 -
      exchange d0 7
      write d0 : delete j1
      dropHistory d0
      """)
  }

  @Test("an own change that compaction has dropped is what the next one was made upon")
  func dropped() throws {
    try run(
      """
      world 24695 3 20 262144
      resolver d2 3
      write d0 : edit j3 1058 0 -
      exchange d0 4
      exchange d2 2
      write d2 : edit j3 1065 0 -
      call d2
      write d2 : edit j3 1074 0 -
      backUp
      reopen 834124
      exchange d2 3
      restore 868
      dropHistory d2
      """)
  }

  @Test("a conflict with nothing is decided upon what has come since")
  func conflictWithNothing() throws {
    try run(
      """
      world 1543 4 4000 262144
      exchange d2 1
      backUp
      write d1 : put c11 15 0 -
      exchange d1 3
      exchange d3 3
      exchange d2 1
      durableWrite d3 : bad h1 19 58 b
      scope d2 2
      exchange d3 1
      write d2 : put c11 51 14 ab
      exchange d2 4
      restore 362
      call d2
      """)
  }

  @Test("a store that begins a feed anew does not keep what was deleted there and dropped")
  func begunAnew() throws {
    try run(
      """
      world 31319 3 1 262144
      write d0 : bad c5 13 0 -
      write d1 : put l4 14 0 - ; edit j0 15 0 - ; put h2 16 0 - ; put h4 17 0 -
      exchange d1 6
      write d0 : put l4 25 0 - ; put l2 26 0 - ; put l3 27 0 - ; put c22 28 0 -
      exchange d0 8
      exchange d2 8
      exchange d0 1
      backUp
      write d0 : put c12 34 0 -
      write d1 : bad j3 37 0 -
      write d0 : put l3 40 0 -
      advance 2678400
      exchange d1 8
      write d1 : put c4 50 0 -
      exchange d0 7
      durableWrite d0 : put c17 58 0 -
      exchange d1 7
      write d0 : edit j0 60 0 -
      validator 2
      scope d2 0
      write d0 : delete c5
      exchange d0 5
      exchange d2 8
      restore 262
      exchange d0 8
      clone d2
      exchange d839 4
      exchange d0 8
      exchange d0 4
      advance 2678400
      exchange d0 4
      dropHistory
      """)
  }

  @Test("a change that counts by the verdict that is being taken is not sent again")
  func verdictUnderWay() throws {
    try run(
      """
      world 38303 4 3 4000
      exchange d2 2
      write d2 : put c11 29 0 -
      call d2
      scope d2 2
      call d2
      deliver 117
      write d3 : bad c11 39 12 a
      deliver 666
      deliver 888
      exchange d3 4
      exchange d2 3
      """)
  }

  @Test("a value that stands behind all that was heard of ends a conflict")
  func behindHead() throws {
    try run(
      """
      world 759 3 20 4000
      write d1 : put h0 10 0 -
      exchange d1 4
      exchange d2 3
      write d1 : delete h0
      write d2 : put l0 15 0 -
      exchange d1 1
      advance 2678400
      exchange d0 1
      dropHistory
      backUp
      anew
      exchange d2 4
      restore 600
      """)
  }

  @Test("a device that knew a feed before it was made anew compares what the restored one holds")
  func restoredAfterAnew() throws {
    try run(
      """
      world 15387 4 4000 262144
      exchange d2 3
      write d2 : put h3 17 0 -
      call d2
      deliver 443
      write d2 : delete h3
      exchange d3 2
      exchange d2 4
      backUp
      anew
      write d3 : put j1 64 0 -
      exchange d3 2
      advance 2678400
      restore 142
      dropHistory
      """)
  }

  @Test("a change upon one out of scope keeps what both were made upon when the scope is widened")
  func widenedOverPending() throws {
    try run(
      """
      world 1801757 3 3 262144 2
      durableWrite d0 : put c0 6 45 a
      exchange d0 5
      write d0 : put c0 2095 0 -
      scope d0 3
      exchange d0 5
      scope d0 1
      durableWrite d0 : put c0 3115 0 -
      exchange d0 2
      dropHistory d0
      call d0
      """)
  }

  @Test("a change brought back with the time of a clock that goes ahead gives way to later ones")
  func broughtBackFromAhead() throws {
    try run(
      """
      world 1907671 3 4000 262144
      jump d2 604692
      backUp
      exchange d2 2
      resolver d2 1
      durableWrite d2 : put k1 72 0 -
      exchange d2 2
      exchange d0 2
      clone d0
      write d0 : put s77 78 0 -
      restore 126
      exchange d0 8
      backUp
      write d0 : put k1 101 0 -
      write d1 : put k1 102 0 -
      exchange d0 1
      restore 1000000
      exchange d1 4
      dropHistory
      """)
  }

  @Test("a name that changed before that was written down sends nothing again that is there")
  func renamedInTheMiddle() throws {
    try run(
      """
      world 1908430 3 7 262144 2
      write d1 : put l2 3 0 -
      exchange d1 3
      backUp
      powerCut d1 113259
      exchange d0 2
      call d1
      deliver 604
      deliver 92
      fuse d1 1 246899
      restore 93
      exchange d1 2
      """)
  }

  @Test("a change under the former name is known after a restart in the middle of a change of name")
  func knownUnderFormerName() throws {
    try run(
      """
      world 1829698 3 4000 262144 2
      write d2 : put h0 6 0 -
      call d0
      deliver 166
      call d1
      exchange d2 3
      exchange d0 1
      fuse 4 737283
      call d0
      deliver 502
      backUp
      exchange d0 1
      deliver 871
      exchange d1 1
      write d1 : attach l3 17 0 -
      deliver 819
      exchange d1 6
      call d0
      deliver 924
      kill d2
      deliver 998
      call d2
      write d1 : put h0 1021 0 -
      deliver 683
      deliver 795
      call d1
      call d2
      drop 781
      restore 993
      deliver 305
      fuse d2 7 117525
      drop 380
      deliver 316
      call d2
      deliver 271
      deliver 524
      deliver 137
      """)
  }

  @Test("a batch that ends between the changes of a key leaves what they were made upon in the log")
  func basedAcrossBatches() throws {
    try run(
      """
      world 2306877 3 3 300 3
      validator 2
      durableWrite d1 : bad c14 28 0 -
      write d2 : put c7 1081 0 -
      exchange d2 3
      resolver d1 4
      exchange d1 4
      durableWrite d1 : delete c14
      write d1 : same c15 1106 0 -
      write d1 : put c7 1109 0 - ; delete c7 ; put c7 1110 58 a
      call d1
      dropHistory d1
      """)
  }

  @Test("a change in conflict with what has left the scope is decided upon what stands there now")
  func leftWhileInConflict() throws {
    try run(
      """
      world 2425559 3 4000 4000 1
      write d2 : edit j3 37 41 ab
      scope d1 4
      exchange d2 3
      exchange d1 2
      write d2 : edit j3 1082 13 a
      call d2
      deliver 49
      write d1 : edit j3 1089 0 -
      deliver 114
      fuse d1 4 894742
      call d1
      write d1 : bad k2 1108 0 -
      deliver 928
      write d2 : edit j3 1112 0 -
      deliver 497
      exchange d2 3
      resolver d1 4
      """)
  }
}
