import Synchronization
import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Work under way when a compaction begins, and work that ends while one is under way.
@Suite("A compaction beside sorted runs and closing")
struct CompactionRaceTests {
  let store: TestStore
  let disk: HookedDisk

  init() {
    store = TestStore()
    disk = HookedDisk(store.disk)
  }

  /// A key that lives, and one that is gone.
  private func fill(_ engine: Engine) throws {
    try engine.put("stays", "1")
    try engine.put("gone", "1")
    try engine.delete("gone")
  }

  /// Lets other threads go on until something holds.
  /// - Returns: whether it does.
  private func wait(times: Int = 12_000_000, _ holds: () throws -> Bool) rethrows -> Bool {
    for _ in 0..<times {
      if try holds() { return true }
      _ = Monitor(()).wait(timeoutNanoseconds: 100_000) { _ in false }
    }
    return false
  }

  private func expectForgotten(_ engine: Engine) throws {
    #expect(try engine.reader.slot(ofKey: bytes("gone").rawSpan) == nil)
    #expect(try engine.get("stays") == "1")
    #expect(try engine.reader.bounds().droppedThrough == 3)
    try engine.close()
    let again = try store.open(.write)
    #expect(try again.reader.slot(ofKey: bytes("gone").rawSpan) == nil)
    try again.close()
    let report = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(report.findings == [])
  }

  @Test("the index forgets a delete that goes, also when a sorted run from before is being written")
  func runUnderWay() throws {
    let engine = try store.open(on: disk)
    try fill(engine)
    let failure = Lock<TidemarkError?>(nil)
    let isDone = Mutex(false)
    let worker = Lock<WorkerThread?>(nil)
    disk.once(.before, .open, of: ".idx") {
      do {
        let thread = try WorkerThread(name: "compacts") {
          do throws(TidemarkError) {
            try engine.compact(CompactionOptions(dropHistory: true))
          } catch { failure.withLock { $0 = error } }
          isDone.withLock { $0 = true }
        }
        worker.withLock { $0 = thread }
        // It has said by then what goes, and wants a sorted run of its own.
        #expect(try wait { try engine.reader.bounds().historyFrom >= 3 })
        // If it does not wait for this sorted run, it has time to end now.
        _ = wait(times: 1_000) { isDone.withLock { $0 } }
      } catch { Issue.record(error) }
    }
    try engine.checkpointer.writeRun()
    worker.withLock { $0 }?.join()
    #expect(failure.withLock { $0 } == nil)
    try expectForgotten(engine)
  }

  @Test("the index forgets a delete that goes, also when a sorted run had failed before it")
  func runFailed() throws {
    let engine = try store.open()
    try engine.put("first", "1")
    store.disk.plan = [
      FaultRule(.error(.EIO), .call(1), calls: .only([.write]), path: ".idx", times: .max)
    ]
    #expect(throws: TidemarkError.self) { try engine.checkpointer.writeRun() }
    store.disk.plan = .none
    try engine.delete("first")
    try engine.put("stays", "1")
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(try engine.reader.slot(ofKey: bytes("first").rawSpan) == nil)
    #expect(try engine.reader.bounds().droppedThrough == 2)
    try engine.close()
  }

  @Test("eraseGivenUp does not remove the output file of a running compaction")
  func erasingMeanwhile() throws {
    let engine = try store.open(on: disk)
    try fill(engine)
    try engine.writer.sealSegments()
    let isDone = Mutex(false)
    let worker = Lock<WorkerThread?>(nil)
    disk.once(.before, .write, of: "/log/") {
      do {
        let thread = try WorkerThread(name: "erases") {
          do { try engine.eraseGivenUp() } catch { Issue.record("\(error)") }
          isDone.withLock { $0 = true }
        }
        worker.withLock { $0 = thread }
        // If it does not wait for the compaction, it has time to end now.
        _ = wait(times: 1_000) { isDone.withLock { $0 } }
      } catch { Issue.record(error) }
    }
    try engine.compact(CompactionOptions(dropHistory: true))
    worker.withLock { $0 }?.join()
    #expect(isDone.withLock { $0 })
    try expectForgotten(engine)
  }

  @Test(
    "closing waits until a compaction has cleared up, and the next opening loses nothing",
    arguments: 1...4)
  func closing(step: Int) throws {
    let engine = try store.open()
    try fill(engine)
    let worker = Lock<WorkerThread?>(nil)
    let reopened = Lock<Engine?>(nil)
    let steps = Mutex(0)
    let error = #expect(throws: TidemarkError.self) {
      try engine.compact(
        CompactionOptions(dropHistory: true) { [store] in
          let isNow = steps.withLock { steps in
            steps += 1
            return steps == step
          }
          guard isNow else { return false }
          do {
            let thread = try WorkerThread(name: "closes") {
              do {
                try engine.close()
                #expect(engine.compactor.compacting.withLock { !$0.isRunning })
                let next = try store.open(.write)
                try next.put("next", "1", durability: .durable)
                // Its files get the names that the other compaction is about to take.
                try next.compact(CompactionOptions(dropHistory: true))
                reopened.withLock { $0 = next }
              } catch { Issue.record(error) }
            }
            worker.withLock { $0 = thread }
            #expect(wait { engine.reader.isClosed })
            // If closing does not wait for the compaction, it has time to end now.
            _ = wait(times: 1_000) { reopened.withLock { $0 } != nil }
          } catch { Issue.record(error) }
          return false
        })
    }
    #expect(error?.code == .closed)
    worker.withLock { $0 }?.join()
    let next = try #require(reopened.withLock { $0 })
    #expect(try next.get("stays") == "1")
    try next.close()
    let report = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(report.findings == [])
    #expect(try store.open(.readOnly).get("next") == "1")
  }

  @Test("a backup goes on when its store is closed meanwhile")
  func backupBesideClosing() throws {
    let engine = try store.open(on: disk)
    try fill(engine)
    // Of a segment that was written in this opening, too.
    try engine.writer.sealSegments()
    try engine.put("more", "1")
    let hasClosed = Mutex(false)
    disk.once(.before, .write, of: "/copy/log") {
      // On the thread of the backup: nothing else is under way.
      do { try engine.close() } catch { Issue.record("\(error)") }
      hasClosed.withLock { $0 = true }
    }
    try engine.backup(to: "/copy")
    #expect(hasClosed.withLock { $0 } && engine.reader.isClosed)
    let copy = try Engine.open(
      "/copy", configuration: store.configuration,
      environment: EngineEnvironment(
        fileSystem: store.disk, clock: store.clock, random: SeededRandom(seed: 8)))
    #expect(try copy.get("stays") == "1" && copy.get("gone") == nil)
    #expect(try copy.get("more") == "1")
    try copy.close()
  }

  @Test("after a failed sync, a backup throws the error of that sync")
  func backupOfPoisoned() throws {
    let engine = try store.open(on: disk)
    try fill(engine)
    store.disk.plan = .error(.EIO, atCall: 1, of: [.sync])
    #expect(throws: TidemarkError.self) { try engine.writer.flush() }
    store.disk.plan = .none
    let error = #expect(throws: TidemarkError.self) { try engine.backup(to: "/copy") }
    #expect(error?.code == .poisoned || error?.code == .unknownOutcome)
    try? engine.close()
  }

  @Test("an empty store is compacted, whatever is kept of it")
  func empty() throws {
    var store = store
    store.configuration.retention = Retention(versionsPerKey: 1)
    let engine = try store.open()
    try engine.compact()
    try engine.put("k", "1")
    try engine.compact()
    #expect(try engine.get("k") == "1")
    try engine.close()
  }

  @Test("entries that are written beside a compaction do not count against what it has freed")
  func freed() throws {
    func compacted(writing count: Int) throws -> CompactionReport {
      let store = TestStore()
      let engine = try store.open()
      for i in 0..<50 { try engine.put("k", String(repeating: "\(i) ", count: 500)) }
      let remaining = Mutex(count)
      // Segments are sealed by then, and what is to be rewritten is chosen.
      let options = CompactionOptions(dropHistory: true) {
        remaining.withLock { remaining in
          do {
            for i in 0..<remaining {
              try engine.put("new\(i)", String(repeating: "x\(i)", count: 500))
            }
          } catch { Issue.record(error) }
          remaining = 0
          return false
        }
      }
      let report = try engine.compact(options)
      try engine.close()
      return report
    }
    let (quiet, busy) = (try compacted(writing: 0), try compacted(writing: 40))
    #expect(quiet.bytesFreed > 0 && quiet.bytesFreed == quiet.bytesBefore - quiet.bytesAfter)
    #expect(busy.bytesAfter > quiet.bytesAfter && busy.bytesFreed == quiet.bytesFreed)
  }
}
