import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("The ballast of a store")
struct BallastTests {
  let store: TestStore
  let file: String

  init() {
    var store = TestStore()
    store.configuration.ballastFromLogBytes = 64 << 10
    self.store = store
    file = store.path + "/" + StoreLayout.ballast
  }

  /// Bytes that no compression makes small.
  private func noise(_ count: Int, seed: UInt64) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    return (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
  }

  private func put(_ engine: Engine, _ key: String, bytes count: Int, seed: UInt64) throws {
    var batch = OperationBatch()
    try batch.add(.put, key: bytes(key).rawSpan, value: noise(count, seed: seed).rawSpan)
    try engine.commit(batch)
  }

  /// A store with ballast, on a disk that ordinary writes have filled.
  /// - Parameter disk: through which it is opened for the last time.
  private func filled(_ disk: (any FileSystem)? = nil) throws -> Engine {
    var engine = try store.open()
    for i in 0..<40 { try put(engine, "key", bytes: 8 << 10, seed: UInt64(i)) }
    try engine.close()
    #expect(store.disk.contents(of: file)?.count == 1 << 20)
    engine = try store.open(on: disk ?? store.disk)
    try put(engine, "key", bytes: 100, seed: 100)
    store.disk.capacity = store.disk.usedBytes
    var error: TidemarkError.Code?
    for i in 0..<100_000 where error == nil {
      do { try put(engine, "small", bytes: 10, seed: UInt64(i)) } catch let failure
        as TidemarkError
      { error = failure.code }
    }
    #expect(error == .noSpace)
    #expect(store.disk.contents(of: file)?.count == 1 << 20, "writes leave the ballast alone")
    return engine
  }

  @Test("a store on a full disk is closed cleanly")
  func close() throws {
    let engine = try filled()
    try engine.close()
    #expect(store.disk.contents(of: file)?.count == 0)
    let loaded = try #require(try ManifestStore(store.disk, storePath: store.path).load())
    #expect(loaded.manifest.isClosedCleanly && loaded.areEqual)
    store.disk.capacity = nil
    let again = try store.open()
    #expect(again.reader.liveKeys == 2)
    try again.put("more", "1")
    try again.close()
    #expect(store.disk.contents(of: file)?.count == 1 << 20, "it is made again")
  }

  @Test("without ballast the same store finds no space to be closed in")
  func without() throws {
    let engine = try filled()
    store.disk.cut(file, to: 0)
    store.disk.capacity = store.disk.usedBytes
    let error = #expect(throws: TidemarkError.self) { try engine.close() }
    #expect(error?.code == .noSpace)
    store.disk.capacity = nil
    #expect(try store.open().reader.liveKeys == 2)
  }

  @Test(
    "compacting a store on a full disk makes room, and writes go on; without ballast it cannot",
    arguments: [true, false])
  func compact(hasBallast: Bool) throws {
    let engine = try filled()
    if !hasBallast {
      store.disk.cut(file, to: 0)
      store.disk.capacity = store.disk.usedBytes
    }
    let before = store.disk.usedBytes
    let options = CompactionOptions(dropHistory: true)
    guard hasBallast else {
      let error = #expect(throws: TidemarkError.self) { try engine.compact(options) }
      #expect(error?.code == .noSpace)
      return
    }
    try engine.compact(options)
    #expect(store.disk.usedBytes < before)
    try engine.put("more", "1")
    #expect(engine.reader.liveKeys == 3)
    try engine.close()
    #expect(try store.open().keys() == ["key", "more", "small"])
  }

  @Test("no other write takes the space that was given up for a close")
  func reserved() throws {
    let disk = HookedDisk(store.disk)
    let engine = try filled(disk)
    disk.once(.after, .truncate, of: StoreLayout.ballast) {
      for i in 0..<100 as Range<UInt64> {
        var batch = OperationBatch()
        let key: [UInt8] = [1]
        let error = #expect(throws: TidemarkError.self) {
          try batch.add(.put, key: key.rawSpan, value: noise(64 << 10, seed: i).rawSpan)
          try engine.commit(batch)
        }
        #expect(error?.code == .noSpace)
      }
    }
    try engine.close()
    #expect(!disk.isWaiting)
    let loaded = try #require(try ManifestStore(store.disk, storePath: store.path).load())
    #expect(loaded.manifest.isClosedCleanly)
  }

  @Test("ballast that a compaction leaves over is set aside again")
  func leftOver() throws {
    let engine = try filled()
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(store.disk.contents(of: file)?.count ?? 0 == 0, "a log this small needs none")
    store.disk.capacity = nil
    for i in 0..<40 { try put(engine, "key\(i)", bytes: 8 << 10, seed: UInt64(i)) }
    try engine.doBackgroundWork()
    #expect(store.disk.contents(of: file)?.count == 1 << 20)
    try engine.close()
  }

  @Test("an update of MANIFEST takes a small part of the ballast")
  func manifest() throws {
    var engine = try store.open()
    for i in 0..<40 { try put(engine, "key", bytes: 8 << 10, seed: UInt64(i)) }
    try engine.close()
    engine = try store.open()
    let long = Manifest.Damage(
      state: .accepted, segmentID: 1, offset: 0, length: 1, firstSequence: 1, lastSequence: 1,
      reason: [UInt8](repeating: 65, count: 1024))
    engine.writer.writing.withLock { $0.manifest.damage = Array(repeating: long, count: 20) }
    store.disk.capacity = store.disk.usedBytes
    try engine.setRetention(.everything)
    let left = store.disk.contents(of: file)?.count ?? 0
    #expect(left < 1 << 20 && left >= (1 << 20) - (64 << 10))
    try engine.close()
  }

  @Test("a copy of the ballast with nothing on the disk behind it is made good")
  func hollow() throws {
    var engine = try store.open()
    for i in 0..<40 { try put(engine, "key", bytes: 8 << 10, seed: UInt64(i)) }
    try engine.close()
    let solid = store.disk.usedBytes
    store.disk.cut(file, to: 0)
    store.disk.cut(file, to: 1 << 20)
    #expect(store.disk.usedBytes <= solid - (1 << 20))
    engine = try store.open()
    try engine.put("a", "1")
    try engine.close()
    #expect(store.disk.contents(of: file)?.count == 1 << 20)
    #expect(store.disk.usedBytes >= solid)
  }

  @Test("where there is no space for all of it, a part is set aside")
  func part() throws {
    let ballast = Ballast(fileSystem: store.disk, storePath: "")
    store.disk.capacity = 5 << 20
    ballast.provide(8 << 20, isProven: true)
    #expect(ballast.bytes == 4 << 20)
    ballast.provide(16 << 20, isProven: true)
    #expect(ballast.bytes == 4 << 20, "what there is stays")
    store.disk.capacity = store.disk.usedBytes
    ballast.provide(5 << 20, isProven: false)
    #expect(ballast.bytes == 4 << 20)
    ballast.provide(1 << 20, isProven: true)
    #expect(ballast.bytes == 1 << 20)
    #expect(ballast.release(1 << 18) && ballast.bytes == 3 << 18)
    ballast.provide(0, isProven: true)
    #expect(ballast.bytes == 0)
  }

  @Test("the ballast is not touched any more when the store's lock is gone")
  func background() throws {
    let disk = HookedDisk(store.disk)
    var store = store
    store.configuration.doesBackgroundWorkInline = false
    let engine = try store.open(on: disk)
    for i in 0..<40 { try put(engine, "key", bytes: 8 << 10, seed: UInt64(i)) }
    let (closed, done) = (Signal(), Signal())
    disk.once(.before, .allocate, of: StoreLayout.ballast) {
      do {
        _ = try WorkerThread(name: "close") {
          do { try engine.close() } catch { Issue.record(error) }
          closed.give()
        }
      } catch { Issue.record(error) }
      #expect(!closed.wait(milliseconds: 200))
      done.give()
    }
    try engine.doBackgroundWork()
    #expect(done.wait(milliseconds: 0))
    #expect(closed.wait())
  }

  /// Compacts a store in two groups.
  /// - Parameter call: at which call the disk is full, once; nil for never.
  /// - Returns: nil when the compaction failed, and whether a call did.
  private func compactInGroups(
    failingAt call: Int?, _ options: CompactionOptions
  ) throws -> (report: CompactionReport?, wasFull: Bool) {
    var store = TestStore()
    store.configuration.ballastFromLogBytes = 64 << 10
    var engine = try store.open()
    for i in 0..<20 {
      try put(engine, i < 10 ? "a" : "b", bytes: 4 << 10, seed: UInt64(i))
      if i == 9 { try engine.writer.sealSegments() }
    }
    try engine.close()
    engine = try store.open()
    // As if there were so much in it that nothing else fits into the same group.
    engine.writer.writing.withLock { $0.manifest.segments[0].rawBytes = Limits.compactionUnitBytes }
    engine.reader.reading.withLock { $0.manifest.segments[0].rawBytes = Limits.compactionUnitBytes }
    if let call {
      store.disk.plan = .error(.ENOSPC, atCall: call, of: [.open, .write, .allocate])
    }
    let report = try? engine.compact(options)
    let wasFull = store.disk.injected[.error] > 0
    store.disk.plan = .none
    try? engine.close()
    return (report, wasFull)
  }

  @Test("the report of a compaction that was made in two runs tells of both")
  func report() throws {
    let options = CompactionOptions(dropHistory: true)
    let whole = try #require(try compactInGroups(failingAt: nil, options).report)
    #expect(whole.droppedEntries == 18)
    var retried = 0
    for call in 1...80 {
      let (report, wasFull) = try compactInGroups(failingAt: call, options)
      guard wasFull, let report else { continue }
      retried += 1
      #expect(report.droppedEntries == whole.droppedEntries, "no space at call \(call)")
      #expect(report.segmentsBefore == whole.segmentsBefore, "no space at call \(call)")
    }
    #expect(retried > 5)
  }

  @Test("a store that was killed on a full disk is opened")
  func open() throws {
    _ = try filled()
    store.disk.kill()
    store.disk.restart()
    let engine = try store.open(.write)
    #expect(engine.reader.liveKeys == 2)
    #expect(store.disk.contents(of: file)?.count == 0)
    try engine.close()
  }

  @Test("a file that stands in its place is as good as nothing", arguments: [nil, 0, 5, 3 << 20])
  func odd(length: Int?) throws {
    let engine = try store.open()
    for i in 0..<20 { try put(engine, "key", bytes: 8 << 10, seed: UInt64(i)) }
    try engine.close()
    store.disk.erase(file)
    if let length {
      store.disk.replace(file, with: [UInt8](repeating: 7, count: length))
    }
    let again = try store.open(.write)
    #expect(try again.status().bytes.ballast == length ?? 0)
    try again.put("a", "1")
    try again.backup(to: "/copy")
    #expect(store.disk.contents(of: "/copy/" + StoreLayout.ballast) == nil)
    try again.close()
    #expect(store.disk.contents(of: file)?.count == 1 << 20)
    #expect(try store.open().keys() == ["a", "key"])
  }

  @Test("a small store has none")
  func small() throws {
    let engine = try store.open()
    try engine.put("a", "1")
    try engine.close()
    #expect(store.disk.contents(of: file) == nil)
  }
}
