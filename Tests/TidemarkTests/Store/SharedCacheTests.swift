import Testing
import Tidemark
import TidemarkTestKit

@Suite("A cache that stores share")
struct SharedCacheTests {
  private let cache = SharedCache(bytes: 1 << 20)

  /// A compacted store whose values are one letter each.
  ///
  /// Equal seeds give equal segments: two such stores differ in the letter alone.
  private func store(
    _ letter: String, keys: Int, on machine: Machine = Machine()
  ) throws -> Store {
    var configuration = machine.configuration()
    configuration.cacheBytes = 0
    configuration.sharedCache = cache
    let store = try Store.openBlocking(at: "store", configuration: configuration)
    var batch = WriteBatch()
    for key in 0..<keys {
      try batch.put("\(10_000 + key)", String(repeating: letter, count: 900))
    }
    try store.blocking.write(batch)
    try store.blocking.compact()
    return store
  }

  private func check(_ store: Store, holds letter: String, keys: Int) throws {
    for key in 0..<keys {
      #expect(
        try store.text(forKey: "\(10_000 + key)") == String(repeating: letter, count: 900))
    }
  }

  @Test("stores read their own values, also where equal blocks of theirs stand at equal places")
  func apart() throws {
    let first = try store("a", keys: 50)
    let second = try store("b", keys: 50)
    for _ in 0..<2 {
      try check(first, holds: "a", keys: 50)
      try check(second, holds: "b", keys: 50)
    }
    #expect(cache.bytes > 2 * 50 * 900, "both stores keep what they have read")
  }

  @Test("one store in use has the memory of all, and together they never exceed it")
  func bound() throws {
    let stores = try (0..<4).map { _ in try store("a", keys: 1_000) }
    try check(stores[0], holds: "a", keys: 1_000)
    #expect(cache.bytes > 3 << 18, "three quarters of it, with three stores beside")
    for store in stores { try check(store, holds: "a", keys: 1_000) }
    #expect(cache.bytes <= 1 << 20)
    #expect(try stores.allSatisfy { try $0.status.cacheBytes == 0 })
  }

  @Test("a store that takes up others' writes forgets its own part only")
  func forgetting() throws {
    let kept = try store("a", keys: 50)
    try check(kept, holds: "a", keys: 50)
    let before = cache.bytes
    let machine = Machine()
    let other = try store("b", keys: 50, on: machine)
    try check(other, holds: "b", keys: 50)
    #expect(cache.bytes > before)
    try other.blocking.suspend()
    let writer = try machine.open()
    try writer.blocking.put("10000", "written meanwhile")
    try writer.blocking.close()
    try other.blocking.resume()
    #expect(cache.bytes >= before)
    try check(kept, holds: "a", keys: 50)
    #expect(try other.text(forKey: "10000") == "written meanwhile")
    #expect(try other.text(forKey: "10001") == String(repeating: "b", count: 900))
  }
}
