import Testing
import Tidemark
import TidemarkTestKit

@Suite("Marks by what a server says")
struct StaleMarkTests {
  let machine = Machine()

  @Test("keys and labels are marked in all caches of a store, and what the user owns is not")
  func marks() async throws {
    let store = try machine.open()
    let red = try store.cache(prefix: "red/"), blue = try store.cache(prefix: "blue/")
    try await red.put("1", [1], labels: ["news"])
    try await red.put("2", [1])
    try await blue.put("1", [1], labels: ["news"])
    try await store.put("mine", "1", labels: ["news"])
    #expect(try await store.markStale(keys: ["red/2", "mine", "absent"]) == 1)
    #expect(try red.isValid("1") && !red.isValid("2") && blue.isValid("1"))
    #expect(try await store.markStale(labels: .all("news")) == 2)
    #expect(try !red.isValid("1") && !blue.isValid("1"))
    #expect(try store.entry(forKey: "mine")?.sequence == 4)
    #expect(try await store.markStale() == 0)
    try await store.close()
  }

  @Test("events of a server are followed until they end")
  func hints() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    for key in ["1", "2", "3"] { try await cache.put(key, [1], labels: [EntryLabel(key)]) }
    let (events, feed) = AsyncStream.makeStream(of: String.self)
    let follower = Task {
      try await store.markStale(
        on: events.map { name in StaleHint(keys: [Key("a/\(name)")], labels: .all("3")) })
    }
    feed.yield("1")
    feed.yield("absent")
    feed.finish()
    try await follower.value
    #expect(try !cache.isValid("1") && cache.isValid("2") && !cache.isValid("3"))
    try await store.close()
  }

  @Test("more entries than one commit takes are marked all the same")
  func many() async throws {
    let store = try machine.open()
    var batch = WriteBatch()
    let options = PutOptions(storageClass: .cache)
    for number in 0..<9_000 { try batch.put("a/\(number)", "1", labels: ["x"], options: options) }
    try await store.write(batch)
    #expect(try await store.markStale(labels: .all("x")) == 9_000)
    try await store.close()
  }
}
