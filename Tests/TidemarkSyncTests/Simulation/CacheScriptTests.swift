import Testing
import TidemarkSyncTestKit

/// Failures that the simulator has found where a cache stands beside what is replicated.
@Suite("Caches beside replication")
struct CacheScriptTests {
  private func run(_ script: String) throws {
    try SyncSimulation(SyncScript(parsing: script)).run()
  }

  @Test("a batch that caches a value over the user's own of the same key is refused")
  func hidden() throws {
    try run(
      """
      world 186 3 1 300
      exchange d2 3
      cachePut d2 3 1102 5 0 : put k3 1103 0 -
      call d2
      reopen d2
      """)
    try run(
      """
      world 54 3 1 262144
      cachePut d1 6 40 31 1 : put k6 41 0 -
      cachePut d1 6 48 0 63
      """)
  }

  @Test("giving up a key that is not there says so, whatever is due to expire besides")
  func absent() throws {
    try run(
      """
      world 7 3 3 262144
      cachePut d2 2 20 20 0
      advance 2454023
      cacheRemove d2 5
      """)
  }

  @Test("a user's touch of a cached key renews it, and nothing of it travels")
  func touched() throws {
    try run(
      """
      world 395 3 1 262144
      cachePut d0 6 1051 25 157
      advance 75
      write d0 : touch k6
      cacheRead d0 6
      """)
  }

  @Test("a cache stays within its bound after a user's touch and a compaction")
  func touchedAndCompacted() throws {
    try run(
      """
      world 203843 3 1 262144 2
      cachePut d0 3 16 28 296
      cacheStale d0 3
      cachePut d0 6 20 36 0 : put j3 21 0 -
      write d0 : touch k3
      cachePut d0 7 40 31 1
      compact d0
      cachePut d0 0 55 40 1
      """)
  }

  @Test("a cached value stays when its key leaves the scope; a write to it is made upon nothing")
  func leftScope() throws {
    try run(
      """
      world 406091 3 4000 300
      call d1
      deliver 621
      scope d0 1
      deliver 611
      exchange d0 1
      call d1
      write d1 : put k7 8 39 a
      deliver 129
      deliver 471
      call d1
      deliver 580
      cachePut d0 7 18 6 1
      write d2 : put k7 43 0 -
      exchange d2 3
      call d0
      deliver 716
      deliver 831
      deliver 150
      write d0 : put k7 111 35 a
      """)
  }

  @Test("a user's touch is what is left where the power takes the cache's own after it")
  func touchedBeforePowerCut() throws {
    try run(
      """
      world 715235 3 20 300 2
      cachePut d1 6 47 38 0 : put l1 48 0 -
      cachePut d1 5 55 33 343
      advance 51
      compact d1
      write d1 : touch k6
      compact d1
      cacheTouch d1 6 150
      fuse d1 5 985643
      cachePut d1 3 105 52 242
      cacheStale d1 5
      exchange d1 1
      cacheRead d1 6
      """)
  }
}
