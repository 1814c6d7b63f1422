import Synchronization
import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Readers beside a segment that is sealed", .timeLimit(.minutes(20)))
struct SealingRaceTests {
  @Test("a reader of the newest segment never hears that anything was closed")
  func sealing() throws {
    let engine = try TestStore().open()
    let isDone = Mutex(false)
    let failure = Lock<TidemarkError?>(nil)
    let lengths = Lock<[(before: Int, after: Int)]>([])
    let reader = try WorkerThread(name: "reads") {
      do throws(TidemarkError) {
        while !isDone.withLock({ $0 }) {
          guard let segment = engine.reader.reading.withLock({ $0.segments.last }) else { continue }
          let before = segment.usedLength()
          for _ in 0..<50 { _ = try segment.frames() }
          lengths.withLock { $0.append((before, segment.usedLength())) }
        }
      } catch { failure.withLock { $0 = error } }
    }
    for i in 0..<40 {
      try engine.put("k\(i)", "1")
      try engine.writer.sealSegments()
    }
    isDone.withLock { $0 = true }
    reader.join()
    #expect(failure.withLock { $0 } == nil)
    #expect(lengths.withLock { $0.allSatisfy { $0.before <= $0.after } })
    try engine.close()
  }
}
