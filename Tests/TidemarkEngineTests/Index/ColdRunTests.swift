import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Which parts of a sorted run's file the first look-ups after an opening read.
@Suite("Look-ups in a run of which nothing was read") struct ColdRunTests {
  private static let count = 60_000

  private func slot(_ number: Int, in run: SortedRun) throws -> Slot? {
    let key = SampleRun.key(number)
    let hash = KeyHash.hash(key.rawSpan, seed: SampleRun.seed)
    return try run.lookup(key.rawSpan, hash: hash, maySearch: true)?.slot
  }

  /// Whether most buckets are in memory; a few share a chunk with what a search reads.
  private func hasReadTable(_ run: SortedRun) -> Bool {
    (0..<128).count { run.hasReadHash(UInt64($0) << 57) } > 64
  }

  @Test("gets use binary search at first, and the hash table after many of them")
  func searchThenTable() throws {
    let run = try SampleRun.open(count: Self.count)
    var random = SeededGenerator(seed: 5)
    var asked = 0
    while !hasReadTable(run), asked < 100_000 {
      let number = Int.random(in: 0..<(2 * Self.count), using: &random)
      #expect(try slot(number, in: run)?.sequence == (number % 2 == 0 ? UInt64(number) + 1 : nil))
      asked += 1
    }
    #expect(asked > 100)
    #expect(hasReadTable(run))
    for number in stride(from: 0, to: 2 * Self.count, by: 7) {
      #expect(try slot(number, in: run)?.sequence == (number % 2 == 0 ? UInt64(number) + 1 : nil))
    }
  }

  @Test("keys before the first one and behind the last one are absent")
  func outside() throws {
    let run = try SampleRun.open(count: Self.count)
    for key in [[0], [UInt8]("key/".utf8), [255], [UInt8](repeating: 255, count: 500)] {
      let hash = KeyHash.hash(key.rawSpan, seed: SampleRun.seed)
      #expect(try run.lookup(key.rawSpan, hash: hash, maySearch: true) == nil)
      #expect(try run.lookup(key.rawSpan, hash: hash) == nil)
    }
    #expect(!hasReadTable(run))
  }

  @Test("an unreadable page makes only look-ups of the keys in its chunk fail")
  func failingPage() throws {
    let bad = RunLayout.fileOffset(ofChunk: 9, tagBytes: 0) + 5000
    let run = try SampleRun.open(count: Self.count, failing: [bad])
    var failed: [Int] = []
    for number in stride(from: 0, to: 2 * Self.count, by: 2) {
      do { #expect(try slot(number, in: run)?.sequence == UInt64(number) + 1) } catch {
        failed.append(number)
      }
    }
    // A key takes more than three bytes; of other keys a few have tags that lead there.
    #expect(failed.count > 1000)
    #expect(failed.count < RunLayout.chunkBytes / 3)
  }
}
