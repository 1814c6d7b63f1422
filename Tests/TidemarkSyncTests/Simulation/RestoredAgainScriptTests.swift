import Testing
import TidemarkSyncTestKit

/// Failures that the simulator has found where a server is restored again while its devices still
/// compare or send what the last restoring has made of it.
@Suite("Restored again")
struct RestoredAgainScriptTests {
  private func run(_ script: String) throws {
    try SyncSimulation(SyncScript(parsing: script)).run()
  }

  @Test("a device that never wrote knows what it brings back in a feed that others have mended")
  func neverWrote() throws {
    try run(
      """
      world 205503 3 4000 262144 1
      backUp
      jump d0 1427811
      write d2 : put c26 3 0 -
      exchange d2 4
      exchange d0 2
      write d1 : put s17' 18 0 -
      exchange d1 2
      clone d0
      restore 401
      exchange d1 8
      backUp
      write d0 : put c26 80 0 -
      exchange d0 8
      restore 1000000
      """)
  }

  @Test("a feed that is restored between the sums and the values is compared once more")
  func whileComparing() throws {
    try run(
      """
      world 200619 4 3 262144 2
      backUp
      write d0 : put h1 16 0 -
      durableWrite d1 : put c17 43 0 - ; put c22 44 0 - ; put c20 45 0 -
      backUp
      exchange d0 4
      backUp
      backUp
      write d0 : put c21 62 0 -
      restore 897
      exchange d0 4
      exchange d1 2
      call d1
      backUp
      giveUp d0
      deliver 175
      call d0
      backUp
      deliver 1000000
      deliver 421
      deliver 289
      backUp
      deliver 67
      call d0
      deliver 358
      deliver 805
      restore 319
      exchange d0 2
      """)
  }

  @Test("a delete made upon what a server still has stays, wherever its epoch was lost")
  func openedSince() throws {
    try run(
      """
      world 353530 2 1 262144
      write d1 : put h1 6 0 -
      exchange d1 3
      write d0 : attach h1 1050 0 -
      exchange d0 3
      write d0 : delete h1
      backUp
      reopen 1 543305
      exchange d0 1
      restore 698
      """)
  }

  @Test("a change under way that a later copy of the feed has gives way to what was made upon it")
  func underWayAgain() throws {
    try run(
      """
      world 320115 3 7 4000
      backUp
      backUp
      exchange d0 1
      backUp
      backUp
      write d0 : put c15 1079 0 -
      write d1 : put c15 1078 0 -
      exchange d1 4
      backUp
      exchange d0 3
      restore 272
      write d1 : put c1 1090 0 -
      write d0 : same j4 1091 0 -
      exchange d1 4
      call d1
      deliver 553
      duplicate 522
      exchange d0 8
      restore 1000000
      call d1
      """)
  }

  @Test("a delete upon a put that was under way when its device was copied is not forgotten")
  func deletedUnderWay() throws {
    try run(
      """
      world 601786 3 1 262144
      write d0 : edit j2 5 0 -
      exchange d0 5
      write d1 : edit j2 1026 0 -
      write d0 : delete j2
      backUp d0
      exchange d1 4
      scope d0 4
      exchange d0 7
      restore d0 154
      """)
  }

  @Test("a batch does not count after another one than it was sent after")
  func otherPredecessor() throws { try run(Self.restoredAtBothEnds) }

  private static let restoredAtBothEnds = """
    world 203355 3 1 262144 2
    durableWrite d2 : edit j1 1 0 -
    call d2
    write d2 : put c22 2 0 -
    write d2 : put c16 4 0 -
    call d0
    exchange d2 8
    backUp
    write d2 : put j0 7 0 -
    exchange d0 1
    write d0 : put j0 6 0 -
    call d0
    exchange d0 8
    backUp
    write d2 : put l3 10 0 -
    call d1
    deliver 855
    write d0 : edit j4 11 0 -
    write d1 : put c2 13 0 -
    exchange d0 1
    backUp
    write d0 : put j1 15 0 -
    write d1 : put j1 16 0 -
    restore 1000000
    exchange d1 8
    deliver 396
    deliver 643
    write d2 : put c23 19 0 -
    exchange d2 8
    backUp
    deliver 253
    deliver 982
    durableWrite d2 : put c19 23 0 -
    deliver 27
    write d1 : put h1 24 0 -
    exchange d1 2
    backUp
    exchange d0 8
    restore 513
    write d1 : put c8 30 0 -
    write d0 : bad c22 31 0 -
    call d0
    exchange d0 4
    backUp
    write d2 : put s38' 39 0 -
    call d2
    call d0
    deliver 219
    drop 764
    deliver 354
    deliver 816
    deliver 882
    write d2 : edit j2 47 0 -
    write d2 : put c24 48 0 -
    exchange d2 8
    backUp
    write d2 : put l1 54 0 -
    write d0 : put l1 55 0 -
    exchange d2 1
    restore 1000000
    exchange d0 4
    deliver 64
    call d1
    backUp
    write d2 : put j3 58 0 -
    exchange d2 2
    call d0
    deliver 1000000
    deliver 975
    deliver 971
    write d0 : put c14 60 0 -
    write d0 : put c8 62 0 -
    drop 680
    restore 153
    write d0 : put l4 67 0 -
    call d0
    call d2
    write d0 : delete l3
    deliver 316
    deliver 834
    write d0 : put c9 73 0 - ; put c20 74 0 - ; put h3 75 0 -
    deliver 463
    exchange d0 8
    exchange d1 8
    backUp
    exchange d1 1
    exchange d0 2
    call d0
    restore 1000000
    exchange d0 8
    call d0
    deliver 428
    exchange d2 8
    exchange d1 8
    backUp
    exchange d1 1
    exchange d2 4
    call d2
    restore 1000000
    deliver 1000000
    exchange d2 8
    exchange d0 8
    backUp
    exchange d0 1
    restore 1000000
    deliver 1000000
    exchange d0 8
    deliver 140
    exchange d0 6
    call d2
    exchange d2 6
    backUp d2
    call d0
    exchange d2 6
    deliver 567
    exchange d2 3
    exchange d2 3
    exchange d2 3
    restore d2 563
    exchange d0 4
    backUp
    restore 34
    exchange d2 8
    exchange d2 4
    call d2
    restore 1000000
    """

  @Test("a delete upon what a device had sent before it was restored is not forgotten")
  func deletedAfterRename() throws {
    try run(
      """
      world 801862 2 1 300
      exchange d1 2
      write d1 : put h1 44 0 -
      call d1
      write d1 : put h1 52 0 -
      backUp d1
      exchange d1 5
      restore d1 871
      exchange d1 1
      write d1 : delete h1
      scope d1 1
      """)
  }

  @Test("a delete stays while a restored feed that has brought the key back is read once more")
  func deletedWhileReadingAgain() throws {
    try run(
      """
      world 851791 3 20 300 2
      durableWrite d1 : put k3 11 30 ab ; put c2 12 24 - ; edit j0 13 0 -
      write d1 : put h0 14 47 -
      exchange d0 2
      write d0 : edit j1 15 0 -
      call d0
      deliver 286
      backUp
      write d0 : put s57' 58 2252 a
      write d0 : edit j4 67 0 - ; put k0 68 36 ab ; edit j1 69 0 - ; put l2 70 13 c
      exchange d1 4
      backUp d0
      write d0 : put l1 74 7 c ; put k6 75 38 b
      write d2 : put k6 76 0 -
      write d0 : edit j1 85 0 -
      write d1 : put l4 88 55 a
      exchange d0 8
      exchange d2 4
      exchange d1 3
      restore d0 670
      restore 119
      write d1 : put l0 105 0 - ; delete j1
      exchange d1 3
      exchange d1 8
      exchange d2 8
      exchange d0 6
      giveUp d2
      fuse d2 15 108353
      write d2 : put k5 113 0 -
      advance 3436169
      exchange d2 8
      dropHistory d2
      """)
  }

  @Test("a change refused by a restored peer that has it again later does not stay out of reach")
  func refusedMeanwhile() throws {
    try run(
      """
      world 1000774 3 4000 262144
      backUp
      write d2 : put l1 35 0 -
      call d2
      exchange d2 3
      call d0
      backUp
      giveUp d0
      call d0
      reopen d0 383222
      write d2 : bad c15 2059 0 -
      call d2
      call d0
      reopen d2
      call d2
      deliver 952
      deliver 437
      deliver 964
      deliver 788
      deliver 947
      duplicate 372
      reach d2 5
      exchange d2 2
      restore 618
      exchange d2 2
      backUp
      exchange d2 3
      restore 190
      """)
  }

  @Test("a delete of what a restored server did not have goes to a later copy that has it")
  func deletedWhereItWasNot() throws {
    try run(
      """
      world 3406143 2 4000 262144 1
      backUp
      exchange d0 2
      backUp
      write d0 : put h4 15 0 -
      exchange d0 1
      backUp
      backUp
      exchange d1 3
      backUp
      backUp
      write d1 : delete h4
      exchange d1 1
      backUp
      backUp
      backUp
      backUp
      write d1 : put l0 1100 0 -
      restore 140
      exchange d1 8
      backUp
      backUp
      restore 774
      restore 398
      """)
  }
}
