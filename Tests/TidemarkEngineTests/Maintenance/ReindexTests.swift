import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("An index that is made anew")
struct ReindexTests {
  @Test("it waits for a run of the index that is being written, and knows all that is there")
  func waiting() throws {
    let store = TestStore()
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    for i in 0..<200 { try engine.put("key/\(i)", "\(i)") }
    let second = Lock<(thread: WorkerThread?, hasBegun: Bool, error: TidemarkError?)>(
      (nil, false, nil))
    disk.once(.before, .write, of: "/index/") {
      do {
        let thread = try WorkerThread(name: "reindex") {
          second.withLock { $0.hasBegun = true }
          do throws(TidemarkError) { try engine.reindex() } catch {
            second.withLock { $0.error = error }
          }
        }
        second.withLock { $0.thread = thread }
      } catch { Issue.record(error) }
      // The run stays unwritten until the other thread has come upon it, as far as that shows.
      while second.withLock({ !$0.hasBegun }) {}
      for _ in 0..<300_000 where second.withLock({ $0.error == nil }) {}
    }
    try engine.checkpointer.writeRun()
    second.withLock { $0.thread }?.join()
    #expect(!disk.isWaiting)
    #expect(second.withLock { $0.error?.code } == nil)
    for i in 0..<200 { #expect(try engine.get("key/\(i)") == "\(i)") }
    try engine.close()
  }
}
