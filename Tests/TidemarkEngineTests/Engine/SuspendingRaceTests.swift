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

  @Test("a file stays closed once the store has let go of it, also when that is opened again")
  func write() throws {
    let files = ClosableFileSystem(disk)
    let file = try files.open("/file", .create)
    disk.once(.before, .write, of: "/file") {
      files.close()
      files.reopen()
    }
    let piece: [UInt8] = [1, 2, 3]
    for _ in 0..<2 {
      let error = #expect(throws: FileSystemError.self) {
        try file.writeFully(piece.rawSpan, at: 0)
      }
      #expect(error?.number == ErrorNumber.badDescriptor)
    }
    #expect(store.disk.openFiles == 0)
    let again = try files.open("/file", .readWrite)
    try again.writeFully(piece.rawSpan, at: 0)
    #expect(try again.read(9, at: 0) == piece)
    again.close()
  }

  @Test("a file that is being opened when the store is let go of is not left open")
  func opening() throws {
    let files = ClosableFileSystem(disk)
    disk.once(.after, .open, of: "/file") { files.close() }
    let error = #expect(throws: FileSystemError.self) { try files.open("/file", .create) }
    #expect(error?.number == ErrorNumber.suspended)
    #expect(store.disk.openFiles == 0)
    #expect(try disk.kind("/file") == nil)
    files.reopen()
    _ = try files.open("/file", .create)
  }

  @Test("files beneath a directory that is not to be written can still be read and removed")
  func stopping() throws {
    let files = ClosableFileSystem(store.disk)
    let piece: [UInt8] = [1]
    try files.createDirectory("/store")
    try files.open("/store/file", .create).writeFully(piece.rawSpan, at: 0)
    let (written, read) = (
      try files.open("/store/file", .readWrite), try files.open("/store/file", .read)
    )
    let beside = try files.open("/store beside", .create)
    files.stopWriting(beneath: "/store")
    #expect(throws: FileSystemError.self) { try written.writeFully(piece.rawSpan, at: 0) }
    #expect(throws: FileSystemError.self) { try files.open("/store/other", .create) }
    #expect(try read.read(9, at: 0) == piece)
    try beside.writeFully(piece.rawSpan, at: 0)
    try files.remove("/store/file")
    files.close()
    #expect(throws: FileSystemError.self) { try beside.writeFully(piece.rawSpan, at: 0) }
    #expect(throws: FileSystemError.self) { try files.list("/store") }
    files.reopen()
    try files.open("/store/other", .create).writeFully(piece.rawSpan, at: 0)
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
    #expect(reader.reader.lastSequence == 2)
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
        if !engine.files.mayWrite(engine.path + "/" + path) { return }
        pause.wait(milliseconds: 1)
      }
    }
    var code: TidemarkError.Code?
    do { try body() } catch { code = (error as? TidemarkError)?.code }
    #expect(!disk.isWaiting)
    #expect(done.wait())
    return code
  }

  @Test("suspending does not wait for a sorted run to be written")
  func run() throws {
    let engine = try store.open(on: disk)
    for i in 0..<50 { try engine.put("key\(i)", "1") }
    let next = engine.writer.writing.withLock { $0.manifest.nextRunID }
    let name = Manifest.SortedRun(id: next, sequence: 50, length: 0).fileName
    store.disk.keepsTrace = true
    #expect(
      try suspend(engine, whileWriting: name) { try engine.checkpointer.writeRun() } == .suspended)
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
    try engine.writer.sealSegments()
    let next = engine.writer.writing.withLock { $0.manifest.nextSegmentID }
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

  @Test("a resume during a compaction does not let a second compaction start")
  func claim() throws {
    let engine = try store.open(on: disk)
    for i in 0..<50 { try engine.put("key\(i)", "1") }
    try engine.suspend()
    // A forecast is begun at any time; here it is as if it ran while the store is resumed.
    #expect(engine.compactor.compacting.withLock { $0.begin() })
    try engine.resume()
    let error = #expect(throws: TidemarkError.self) {
      try engine.compact(CompactionOptions(waits: false))
    }
    #expect(error?.code == .busy)
    engine.compactor.compacting.withLock { $0.end() }
    try engine.compact()
    try engine.close()
  }

  @Test("an attachment that is half received goes on after a suspend and resume")
  func upload() throws {
    let engine = try store.open(on: disk)
    let content = [UInt8](repeating: 7, count: 3 << 20)
    let id = AttachmentID(hash: SHA256.hash(content.rawSpan), length: UInt64(content.count))
    let owner = [UInt8](repeating: 9, count: 16)
    let rest = Array(content.dropFirst(2 << 20))
    var part = try #require(try engine.attachmentPart(of: id, for: owner, begins: true))
    _ = try part.append(Array(content.prefix(2 << 20)), at: 0, now: 1)
    disk.once(.after, .open, of: "/part-") {
      do { try engine.suspend() } catch { Issue.record(error) }
    }
    #expect(throws: TidemarkError.self) { try part.append(rest, at: 2 << 20, now: 2) }
    #expect(!disk.isWaiting)
    try engine.resume()
    part = try #require(try engine.attachmentPart(of: id, for: owner, begins: true))
    while try !part.verifyStored(most: 1 << 20) {}
    #expect(part.received >= 2 << 20)
    _ = try part.append(rest, at: 2 << 20, now: 3)
    #expect(part.isWhole)
    try engine.close()
  }
}
