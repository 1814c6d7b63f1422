import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Work under way when an engine is suspended or resumed.
@Suite("Suspending an engine that is at work")
struct SuspendingRaceTests {
  let store: TestStore
  let disk: HookedDisk

  init() {
    store = TestStore()
    disk = HookedDisk(store.disk)
  }

  @Test("a read under which the store was suspended and resumed ends well")
  func read() throws {
    let engine = try store.open(on: disk)
    try engine.put("k", "value")
    disk.once(.before, .read, of: "/log/") {
      do {
        try engine.suspend()
        try engine.resume()
      } catch { Issue.record(error) }
    }
    #expect(try engine.get("k") == "value")
    #expect(!disk.isWaiting)
    try engine.close()
  }

  @Test("a write under which the files were let go of is told so, and a closed file stays closed")
  func write() throws {
    let files = SuspendableFileSystem(disk)
    let file = try files.open("/file", .create)
    disk.once(.before, .write, of: "/file") {
      files.suspend()
      files.resume()
    }
    let piece: [UInt8] = [1, 2, 3]
    var error = #expect(throws: FileSystemError.self) { try file.writeFully(piece.rawSpan, at: 0) }
    #expect(error?.number == ErrorNumber.suspended)
    try file.writeFully(piece.rawSpan, at: 0)
    #expect(try file.read(9, at: 0) == piece)
    disk.once(.before, .read, of: "/file") { file.close() }
    error = #expect(throws: FileSystemError.self) { try file.read(9, at: 0) }
    #expect(error?.number == ErrorNumber.badDescriptor)
    #expect(store.disk.openFiles == 0)
  }

  @Test("a file that is being opened when the store is suspended is not left open")
  func opening() throws {
    let files = SuspendableFileSystem(disk)
    let done = Signal()
    disk.once(.after, .open, of: "/file") {
      do {
        _ = try WorkerThread(name: "suspend") {
          files.suspend()
          done.give()
        }
      } catch { Issue.record(error) }
      #expect(!done.wait(milliseconds: 200))
    }
    let file = try? files.open("/file", .create)
    #expect(done.wait())
    #expect(store.disk.openFiles == 0)
    files.resume()
    #expect(try file?.length() ?? 0 == 0)
  }

  @Test("files that may not grow can still be read, synced and removed")
  func growth() throws {
    let files = SuspendableFileSystem(store.disk)
    let file = try files.open("/file", .create)
    try file.allocate(to: 8)
    files.refuseGrowth()
    let piece: [UInt8] = [1]
    for call in [{ try file.writeFully(piece.rawSpan, at: 0) }, { try file.allocate(to: 9) }] {
      let error = #expect(throws: FileSystemError.self) { try call() }
      #expect(error?.number == ErrorNumber.suspended)
    }
    #expect(try file.read(9, at: 0).count == 8)
    try file.sync()
    try files.remove("/file")
    files.suspend()
    files.resume()
    try files.open("/other", .create).allocate(to: 9)
  }

  @Test("a refresh that began before suspending does not turn back what resuming has found")
  func refresh() throws {
    let writer = try store.open()
    try writer.put("a", "1")
    let reader = try store.open(on: disk, .readOnly)
    let resumed = Signal()
    let suspended = Signal()
    // A trial shows the last thing that a refresh does with the disk.
    try reader.refresh()
    store.disk.keepsTrace = true
    let before = store.disk.trace.count
    try reader.refresh()
    let trial = store.disk.trace[before...]
    store.disk.keepsTrace = false
    let last = try #require(trial.last { $0.operation == .read })
    let same = trial.count { $0.operation == last.operation && $0.path == last.path }
    disk.once(.after, last.operation, of: last.path, skipping: same - 1) {
      do {
        try reader.suspend()
        suspended.give()
        try writer.put("b", "1")
        _ = try WorkerThread(name: "resume") {
          do { try reader.resume() } catch { Issue.record(error) }
          resumed.give()
        }
      } catch { Issue.record(error) }
      resumed.wait(milliseconds: 300)
    }
    try? reader.refresh()
    #expect(suspended.wait(milliseconds: 0))
    #expect(resumed.wait())
    #expect(reader.lastSequence == 2)
    #expect(try reader.keys() == ["a", "b"])
    try reader.close()
    try writer.close()
  }

  /// Suspends while something writes a file, and waits in that call until files may not grow.
  private func suspend(
    _ engine: Engine, whileWriting path: String, _ body: () throws -> Void
  ) throws -> TidemarkError.Code? {
    let done = Signal()
    disk.once(.after, .open, of: path) {
      do {
        _ = try WorkerThread(name: "suspend") {
          do { try engine.suspend() } catch { Issue.record(error) }
          done.give()
        }
      } catch { Issue.record(error) }
      let pause = Signal()
      for _ in 0..<1_200_000 {
        do { try engine.files.checkGrowth(.write, "") } catch { return }
        pause.wait(milliseconds: 1)
      }
    }
    var code: TidemarkError.Code?
    do { try body() } catch { code = (error as? TidemarkError)?.code }
    #expect(!disk.isWaiting)
    #expect(done.wait())
    return code
  }

  @Test("suspending does not wait for an index image to be written")
  func image() throws {
    let engine = try store.open(on: disk)
    for i in 0..<50 { try engine.put("key\(i)", "1") }
    let next = engine.writer.withLock { $0.manifest.nextImageID }
    let name = Manifest.Image(id: next, sequence: 50, length: 0).fileName
    store.disk.keepsTrace = true
    #expect(try suspend(engine, whileWriting: name) { try engine.writeImage() } == .suspended)
    let calls = store.disk.trace.filter { $0.path.contains(name) }
    #expect(!calls.contains { $0.operation == .write || $0.operation == .sync })
    #expect(store.disk.openFiles == 0)
    try engine.resume()
    #expect(try engine.keys().count == 50)
    try engine.close()
  }

  @Test("suspending does not wait for the segments of a compaction to be written")
  func compaction() throws {
    let engine = try store.open(on: disk)
    for i in 0..<50 { try engine.put("key\(i)", "1") }
    try engine.sealSegments()
    let next = engine.writer.withLock { $0.manifest.nextSegmentID }
    let name = StoreLayout.segmentName(id: next, firstSequence: 1)
    store.disk.keepsTrace = true
    #expect(try suspend(engine, whileWriting: name) { try engine.compact() } == .suspended)
    let calls = store.disk.trace.filter { $0.path.contains(name) }
    #expect(!calls.contains { $0.operation == .sync })
    #expect(store.disk.openFiles == 0)
    try engine.resume()
    #expect(try engine.keys().count == 50)
    try engine.close()
  }

  @Test("small segments that suspending leaves behind are merged later, if somebody writes")
  func merging() throws {
    let engine = try store.open()
    for i in 0..<3 * Limits.smallSegments {
      try engine.put("key\(i)", "1")
      let before = engine.reading.withLock { $0.segments.count }
      try engine.suspend()
      #expect(engine.reading.withLock { $0.segments.count } == before, "there is no time for it")
      try engine.resume()
    }
    #expect(engine.reading.withLock { $0.segments.count } <= Limits.smallSegments + 1)
    let calls = store.disk.mutatingCalls
    try engine.doBackgroundWork()
    #expect(store.disk.mutatingCalls == calls, "a store in which nobody writes stays as it is")
    #expect(try engine.keys().count == 3 * Limits.smallSegments)
    try engine.close()
  }
}
