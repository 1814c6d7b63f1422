import Testing
import TidemarkSyncTestKit

/// Scripts in which a compaction shortened the log that pending changes were made upon.
@Suite("Pending changes and compaction")
struct ShortenedScriptTests {
  private func run(_ script: String) throws {
    try SyncSimulation(SyncScript(parsing: script)).run()
  }

  @Test("a delete upon the last of several touches keeps what these have renewed")
  func renewed() throws {
    try run(
      """
      world 3036813 3 3 4000 3
      write d1 : put l3 8 0 -
      exchange d1 4
      exchange d0 3
      durableWrite d0 : touch l3 ; put c9 1042 0 -
      durableWrite d0 : touch l3
      exchange d0 1
      dropHistory d0
      write d0 : delete l3
      dropHistory d0
      """)
  }

  @Test("a put that left the scope upon a dropped one is told to the peer")
  func outOfScope() throws {
    try run(
      """
      world 27255 3 3 300
      scope d0 2
      exchange d0 2
      write d0 : bad j2 84 49 a ; put h0 85 17 b ; put l0 87 17 b ; put l4 88 33 b
      call d0
      write d0 : put l4 102 0 -
      dropHistory d0
      exchange d0 3
      """)
  }

  @Test("a put that a delete has dropped from the log does not come back")
  func deleted() throws {
    try run(
      """
      world 55519 4 4000 262144
      write d0 : put c8 6 0 -
      exchange d0 3
      exchange d3 3
      write d3 : same j2 1007 0 -
      write d2 : put c8 1009 0 -
      call d3
      deliver 296
      deliver 243
      write d3 : delete j2
      advance 1685184
      direction d2 1
      call d3
      advance 597432
      exchange d2 4
      call d2
      giveUp d2
      deliver 104
      call d2
      write d2 : edit j3 1037 0 -
      deliver 167
      duplicate 155
      call d2
      durableWrite d2 : delete j3
      advance 532761
      dropHistory d2
      exchange d1 1
      dropHistory
      exchange d2 4
      """)
  }

  @Test("a put upon a dropped one is not hidden by another's")
  func replaced() throws {
    try run(
      """
      world 58999 3 3 300
      exchange d1 2
      write d1 : put h3 13 0 - ; put c12 15 0 - ; put h4 16 0 - ; put h3 17 542 ab
      durableWrite d2 : edit j1 20 0 -
      write d0 : put c29 24 0 -
      write d0 : put h1 25 0 -
      write d1 : edit j1 34 0 -
      exchange d0 3
      durableWrite d1 : put c2 36 0 -
      write d1 : edit j2 40 0 -
      call d1
      write d1 : put h3 44 0 -
      write d1 : put h1 1048 0 -
      direction d1 1
      exchange d2 4
      exchange d1 1
      exchange d1 3
      resolver d1 1
      exchange d1 3
      write d2 : delete h1
      exchange d2 1
      direction d1 1
      exchange d1 2
      call d1
      deliver 611
      durableWrite d1 : put h1 2081 0 -
      dropHistory d1
      exchange d1 3
      """)
  }

  @Test("a change is told to the peer that was made upon one outside of an earlier scope")
  func earlierScope() throws {
    try run(
      """
      world 69215 2 1 4000
      write d0 : edit j0 1 41 a
      exchange d0 3
      write d0 : edit j0 15 0 - ; put c0 16 0 -
      scope d0 3
      exchange d0 5
      write d0 : put c4 75 0 - ; bad j0 76 0 - ; put h2 77 0 -
      call d0
      deliver 710
      scope d0 4
      exchange d0 5
      dropHistory d0
      """)
  }
}
