import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@Suite("Caches: what a sign-out leaves")
struct CacheErasureTests {
  let machine = Machine()

  private func telling() -> [String] {
    machine.disk.files().filter { path in
      String(decoding: machine.disk.contents(of: path) ?? [], as: UTF8.self).contains("secret")
    }
  }

  @Test(
    "after removeAll nothing is left of items that wait for their switch",
    arguments: [2, 30, 100], [true, false])
  func staged(count: Int, isReopened: Bool) async throws {
    var store = try machine.open()
    var cache = try store.cache(prefix: "c/", policy: .manifest)
    let keys = (0..<(3 * count)).map { Key("secret\(1_000 + $0)") }
    let source = ScriptedCollection(keys)
    await source.fail(Set(keys[count...]))
    var options = MirrorOptions()
    options.mostFailures = 0
    let outcome = try await cache.sync(with: source, options: options)
    #expect(outcome.kind == .held)
    if isReopened {
      try await store.close()
      store = try machine.open()
      cache = try store.cache(prefix: "c/", policy: .manifest)
    }
    #expect(!telling().isEmpty)
    try await cache.removeAll()
    #expect(telling() == [])
    await source.fail([])
    #expect(try await cache.sync(with: source).added == 3 * count)
    try await cache.removeAll()
    #expect(telling() == [])
    try await store.close()
  }

  @Test(
    "once a view is let go of a second removeAll leaves nothing", arguments: [1, 2, 3, 300],
    [true, false])
  func viewed(count: Int, isReopened: Bool) async throws {
    var store = try machine.open()
    var cache = try store.cache(prefix: "c/", policy: CachePolicy(capacity: nil))
    try await store.put("note", "mine")
    for number in 0..<count { try await cache.put("secret\(number)", [1]) }
    var view: StoreView? = try store.view()
    for number in 0..<count where number % 2 == 0 { try await cache.put("secret\(number)", [2]) }
    try await cache.removeAll()
    #expect(try view?.value(forKey: "c/secret0") == [1])
    #expect(!telling().isEmpty)
    view = nil
    if isReopened {
      try await store.close()
      store = try machine.open()
      cache = try store.cache(prefix: "c/", policy: CachePolicy(capacity: nil))
    }
    try await cache.removeAll()
    #expect(telling() == [])
    #expect(try store.value(forKey: "note").map { String(decoding: $0, as: UTF8.self) } == "mine")
    try await store.close()
  }

  @Test(
    "after removeAll no file names the cache's prefix", arguments: [true, false], [1, 70, 500])
  func prefix(isReopened: Bool, reads: Int) async throws {
    var store = try machine.open()
    var cache = try store.cache(prefix: "secret/")
    try await store.put("note", "mine")
    try await cache.put("a", [1])
    for _ in 0..<reads { _ = try cache.value(forKey: "a") }
    if isReopened {
      try await store.close()
      store = try machine.open()
      cache = try store.cache(prefix: "secret/")
    }
    try await cache.removeAll()
    #expect(telling() == [])
    #expect(try store.knownCaches().map(\.status.entries) == [0])
    try await store.close()
    #expect(telling() == [])
  }
}
