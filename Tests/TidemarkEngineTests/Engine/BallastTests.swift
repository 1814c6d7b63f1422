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
  private func filled() throws -> Engine {
    var engine = try store.open()
    for i in 0..<40 { try put(engine, "key", bytes: 8 << 10, seed: UInt64(i)) }
    try engine.close()
    #expect(store.disk.contents(of: file)?.count == 1 << 20)
    engine = try store.open()
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
    #expect(again.liveKeys == 2)
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
    #expect(try store.open().liveKeys == 2)
  }

  @Test("compacting a store on a full disk makes room, and writes go on")
  func compact() throws {
    let engine = try filled()
    let before = store.disk.usedBytes
    try engine.compact(CompactionOptions(dropHistory: true))
    #expect(store.disk.usedBytes < before)
    try engine.put("more", "1")
    #expect(engine.liveKeys == 3)
    try engine.close()
    #expect(try store.open().keys() == ["key", "more", "small"])
  }

  @Test("a store that was killed on a full disk is opened")
  func open() throws {
    _ = try filled()
    store.disk.kill()
    store.disk.restart()
    let engine = try store.open(.write)
    #expect(engine.liveKeys == 2)
    #expect(store.disk.contents(of: file)?.count == 0)
    try engine.close()
  }

  @Test("whatever stands in its place is as good as nothing", arguments: [nil, 0, 5, 3 << 20])
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
