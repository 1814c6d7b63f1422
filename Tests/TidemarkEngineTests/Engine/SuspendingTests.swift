import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Suspending an engine")
struct SuspendingTests {
  /// The error that a call ends with; nil when it does not fail.
  private func code<R>(_ body: () throws -> R) -> TidemarkError.Code? {
    do { _ = try body() } catch { return (error as? TidemarkError)?.code }
    return nil
  }

  /// Writes on the same disk as another process.
  private func elsewhere(
    _ store: TestStore, closing: Bool = true, _ body: (Engine) throws -> Void
  ) throws {
    var configuration = store.configuration
    configuration.access = .write
    let process = store.disk.anotherProcess()
    let engine = try Engine.open(
      store.path, configuration: configuration,
      environment: EngineEnvironment(
        fileSystem: process, clock: store.clock, random: SeededRandom(seed: 99)))
    try body(engine)
    if closing { try engine.close() } else { process.kill() }
  }

  @Test("no file stays open, and nothing is answered")
  func letsGo() throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<50 { try engine.put("key\(i)", "\(i)", durability: .async) }
    try engine.checkpointer.writeRun()
    try engine.put("a", "1", durability: .async)
    let view = try engine.reader.view()
    var log = LogCursor(engine.reader, from: 1, through: 100)
    _ = try log.next()
    #expect(try engine.get("a") == "1")
    try engine.suspend()
    #expect(store.disk.openFiles == 0)
    #expect(engine.reader.isSuspended)
    try engine.suspend()
    let calls = store.disk.calls
    #expect(code { try engine.get("a") } == .suspended)
    #expect(code { try engine.get("key7") } == .suspended)
    #expect(code { try engine.get("a", in: view) } == .suspended)
    #expect(code { try engine.keys(in: view) } == .suspended)
    #expect(code { try engine.put("b", "1") } == .suspended)
    #expect(code { try engine.reader.view() } == .suspended)
    #expect(code { try engine.reader.bounds() } == .suspended)
    #expect(code { try engine.reader.newestEntry(ofKey: bytes("a").rawSpan) } == .suspended)
    #expect(code { try engine.reader.firstKeys(withPrefix: [], limit: 1) } == .suspended)
    #expect(code { try engine.reader.extent(ofPrefix: []) } == .suspended)
    #expect(code { try engine.status() } == .suspended)
    #expect(code { try engine.compact() } == .suspended)
    #expect(code { try engine.checkpointer.writeRun() } == .suspended)
    #expect(code { try engine.writer.flush() } == .suspended)
    #expect(code { while try log.next() != nil {} } == .suspended)
    try engine.doBackgroundWork()
    #expect(store.disk.calls == calls, "a suspended store leaves the disk alone")
    try engine.resume()
    #expect(try engine.get("key7") == "7")
    #expect(try engine.get("a", in: view) == "1")
    try engine.put("b", "1")
    try engine.close()
    #expect(try store.open().reader.liveKeys == 52)
  }

  @Test("resuming reads no more of the log than an opening, and nothing twice")
  func cost() throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<500 { try engine.put("key\(i)", "\(i)") }
    try engine.suspend()
    #expect(engine.reader.liveKeys == 0, "the index goes")
    let copy = store.copy()
    let before = store.disk.calls(of: .read)
    try engine.resume()
    try engine.resume()
    let reads = store.disk.calls(of: .read) - before
    #expect(try engine.get("key499") == "499")
    #expect(try engine.keys().count == 500)
    try engine.close()
    store.restore(copy)
    let again = store.disk.calls(of: .read)
    let opened = try store.open()
    #expect(reads <= store.disk.calls(of: .read) - again + 4, "MANIFEST is looked at twice more")
    try opened.close()
  }

  @Test("an entry that another process wrote meanwhile is seen", arguments: [true, false])
  func another(closing: Bool) throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    try engine.put("b", "1")
    #expect(try engine.get("a") == "1")
    let view = try engine.reader.view()
    try engine.suspend()
    try elsewhere(store, closing: closing) { other in
      try other.put("a", "2")
      try other.delete("b")
      try other.put("c", "3")
    }
    try engine.resume()
    #expect(try engine.get("a") == "2")
    #expect(try engine.get("b") == nil)
    #expect(try engine.keys() == ["a", "c"])
    #expect(try engine.get("a", in: view) == "1")
    #expect(try engine.keys(in: view) == ["a", "b"])
    try engine.put("d", "4")
    #expect(engine.reader.lastSequence == 6)
    try engine.close()
    #expect(try store.open().keys() == ["a", "c", "d"])
  }

  @Test("a view that another process left without its history is refused")
  func compacted() throws {
    let store = TestStore()
    let engine = try store.open()
    for i in 0..<9 { try engine.put("a", "\(i)") }
    let view = try engine.reader.view(at: 4)
    #expect(try engine.get("a", in: view) == "3")
    try engine.suspend()
    try elsewhere(store) { other in
      try other.put("b", "1")
      try other.compact(CompactionOptions(dropHistory: true))
    }
    try engine.resume()
    #expect(code { try engine.get("a", in: view) } == .historyGone)
    #expect(try engine.get("a") == "8")
    try engine.put("a", "9")
    try engine.close()
  }

  @Test("a view of what is gone is refused")
  func diverged() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    try engine.suspend()
    let older = store.disk.files().map { ($0, store.disk.contents(of: $0) ?? []) }
    try engine.resume()
    try engine.put("a", "2")
    let view = try engine.reader.view()
    try engine.suspend()
    for file in store.disk.files() { store.disk.erase(file) }
    for (file, bytes) in older { store.disk.replace(file, with: bytes) }
    try elsewhere(store) { other in try other.put("a", "other") }
    try engine.resume()
    #expect(engine.reader.lastSequence == view.sequence)
    #expect(code { try engine.get("a", in: view) } == .historyDiverged)
    #expect(code { try engine.keys(in: view) } == .historyDiverged)
    #expect(try engine.get("a") == "other")
    try engine.close()
  }

  @Test("while somebody else has the lock the store stays suspended")
  func locked() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    try engine.suspend()
    try elsewhere(store) { _ in
      #expect(code { try engine.resume() } == .locked)
      #expect(engine.reader.isSuspended)
      #expect(code { try engine.get("a") } == .suspended)
      #expect(store.disk.openFiles == 0)
    }
    try engine.resume()
    #expect(try engine.get("a") == "1")
    try engine.close()
  }

  @Test("a file that another process left without a word does not stand in the way")
  func leftover() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    try engine.suspend()
    let next = engine.writer.writing.withLock { $0.manifest.nextSegmentID }
    let name =
      store.path + "/" + StoreLayout.logDirectory + "/"
      + StoreLayout.segmentName(id: next, firstSequence: 2)
    store.disk.replace(name, with: [1, 2, 3])
    try engine.resume()
    try engine.put("b", "1")
    #expect(try engine.keys() == ["a", "b"])
    try engine.close()
  }

  @Test("a suspended store can be closed, and one that reads only be resumed")
  func othersWays() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    let reader = try store.open(.readOnly)
    try reader.suspend()
    try engine.put("b", "1")
    #expect(code { try reader.refresh() } == .suspended)
    try reader.resume()
    #expect(try reader.keys() == ["a", "b"])
    try reader.close()
    try engine.suspend()
    try engine.close()
    #expect(code { try engine.resume() } == .closed)
    #expect(code { try engine.suspend() } == .closed)
    #expect(code { try engine.get("a") } == .closed)
    #expect(try store.open().keys() == ["a", "b"])
  }

  @Test("another store at the same path is not taken for this one")
  func exchanged() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    try engine.suspend()
    for file in store.disk.files() { store.disk.erase(file) }
    #expect(code { try engine.resume() } != nil)
    let other = try store.open(seed: 8)
    try other.put("x", "1")
    try other.close()
    #expect(code { try engine.resume() } == .historyDiverged)
    #expect(engine.reader.isSuspended)
    #expect(store.disk.openFiles == 0)
    try engine.close()
  }

  @Test("a store whose sync failed lets go all the same, and is recovered when it is resumed")
  func poisoned() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1")
    store.disk.plan = .error(.EIO, atCall: 1, of: [.sync])
    #expect(code { try engine.suspend() } == .unknownOutcome)
    #expect(engine.reader.isSuspended)
    #expect(store.disk.openFiles == 0)
    store.disk.plan = .none
    try engine.resume()
    #expect(try engine.get("a") == "1")
    try engine.put("b", "1", durability: .durable)
    try engine.close()
    #expect(try store.open().keys() == ["a", "b"])
  }

  /// Writes, suspends, resumes and writes again.
  private func play(_ engine: Engine) throws {
    try engine.put("a", "1", durability: .async)
    try engine.put("b", "1")
    try engine.suspend()
    try engine.resume()
    try engine.put("c", "1")
    try engine.suspend()
    try engine.resume()
    #expect(try engine.keys() == ["a", "b", "c", "first"])
  }

  @Test("a crash at any call of suspending and resuming loses nothing that was promised")
  func crashes() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("first", "1", durability: .durable)
    let start = store.disk.calls
    store.disk.keepsCrashPoints = true
    try play(engine)
    #expect(store.disk.calls > start)
    let points = store.disk.takeCrashPoints()
    #expect(points.count > 20)
    let whole = ["first", "a", "b", "c"]
    for (number, point) in points.enumerated() {
      for survival in [nil] + Survival.sweep(seed: UInt64(number), randoms: 1).map(Optional.some) {
        let disk =
          survival.map { SimulatedFileSystem(point, keeping: $0) }
          ?? SimulatedFileSystem(killedAt: point)
        let comment: Comment = "crash \(number), \(String(describing: survival))"
        let after = try Engine.open(
          store.path, configuration: store.configuration,
          environment: EngineEnvironment(
            fileSystem: disk, clock: store.clock, random: SeededRandom(seed: 5)))
        let count = Int(after.reader.lastSequence)
        #expect(count >= 1, comment)
        #expect(try after.keys() == whole.prefix(count).sorted(), comment)
        try after.put("after", "1")
        try after.close()
      }
    }
  }

  @Test("an error at any call of suspending and resuming loses nothing, and is made good")
  func errors() throws {
    let trial = TestStore()
    let engine = try trial.open()
    try engine.put("first", "1", durability: .durable)
    let before = trial.disk.calls
    try play(engine)
    let count = trial.disk.calls - before
    #expect(count > 40)
    for errno in [SimulatedErrno.EIO, .ENOSPC] {
      for call in 1...count {
        let store = TestStore()
        let engine = try store.open()
        try engine.put("first", "1", durability: .durable)
        store.disk.plan = .error(errno, atCall: call)
        let failure = code { try play(engine) }
        store.disk.plan = .none
        let comment: Comment = "\(errno) at call \(call), \(String(describing: failure))"
        if engine.reader.isSuspended { #expect(store.disk.openFiles == 0, comment) }
        #expect(failure != .suspended, comment)
        // The failure does not matter: letting go and coming back puts it right.
        try? engine.suspend()
        #expect(store.disk.openFiles == 0, comment)
        try engine.resume()
        try engine.put("after", "1", durability: .durable)
        let keys = try engine.keys()
        #expect(keys.contains("first") && keys.contains("after"), comment)
        try engine.close()
        #expect(try store.open().keys() == keys, comment)
      }
    }
  }
}
