import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@Suite("A cache of a store")
struct CacheTests {
  let machine = Machine()

  private func text(_ bytes: [UInt8]?) -> String? {
    bytes.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("a value is there before and after it is valid, and reading it extends nothing")
  func validity() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(10)))
    try await cache.put("k", Array("1".utf8))
    try await cache.put("short", Array("1".utf8), maxAge: .seconds(2))
    try await cache.put("never", Array("1".utf8), maxAge: .zero)
    #expect(try cache.isValid("k") && cache.isValid("short"))
    #expect(try !cache.isValid("never") && !cache.isValid("absent"))
    machine.clock.advance(by: .seconds(3))
    #expect(try cache.isValid("k") && !cache.isValid("short"))
    #expect(try text(cache.value(forKey: "short")) == "1")
    for _ in 0..<9 {
      _ = try cache.value(forKey: "k")
      machine.clock.advance(by: .seconds(1))
    }
    let entry = try #require(try cache.entry(forKey: "k"))
    #expect(!entry.isValid && entry.uses == 10)
    #expect(entry.validUntil == Timestamp(milliseconds: entry.validated.milliseconds + 10_000))
    #expect(cache.counts.staleHits == 4 && cache.counts.misses == 0)
    try await store.close()
  }

  @Test(
    "a value is valid for whole seconds, rounded up, and by its cache's policy to a millisecond")
  func partsOfSeconds() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .milliseconds(700)))
    let ages: [(Duration?, Int)] = [
      (nil, 700), (.milliseconds(1), 1_000), (.milliseconds(500), 1_000),
      (.milliseconds(1_001), 2_000), (.microseconds(2_999_999), 3_000), (.zero, 0),
      (.milliseconds(-5), 0),
    ]
    for (age, milliseconds) in ages {
      try await cache.put("k", [1], maxAge: age)
      if milliseconds > 0 {
        machine.clock.advance(by: .milliseconds(milliseconds - 1))
        #expect(try cache.isValid("k"), "\(String(describing: age))")
        machine.clock.advance(by: .milliseconds(1))
      }
      #expect(try !cache.isValid("k"), "\(String(describing: age))")
    }
    try await store.close()
  }

  @Test("a touch makes a value valid again without writing it, with a new hash where one is given")
  func touch() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(10)))
    try await cache.put("k", Array("1".utf8), labels: ["red"], hash: [1])
    let before = try #require(try cache.entry(forKey: "k"))
    machine.clock.advance(by: .seconds(20))
    #expect(try await cache.touch("k", hash: [2]))
    #expect(try await cache.touch("absent") == false)
    let after = try #require(try cache.entry(forKey: "k"))
    #expect(after.isValid && after.hash == [2] && after.labels == ["red"])
    #expect(after.updated == before.updated && after.created == before.created)
    #expect(after.validated > before.validated)
    try await store.close()
  }

  @Test("entries that are marked stale are so until they are touched or written, by key and label")
  func marks() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    for key in ["1", "2", "3"] {
      try await cache.put(key, [1], labels: key == "3" ? ["odd", "blue"] : ["odd"])
    }
    try await cache.markStale(keys: ["1", "absent"])
    try await cache.markStale(labels: .all("blue"))
    #expect(try !cache.isValid("1") && cache.isValid("2") && !cache.isValid("3"))
    #expect(try await cache.touch("1"))
    try await cache.put("3", [2])
    #expect(try cache.isValid("1") && cache.isValid("3"))
    machine.clock.advance(by: .seconds(301))
    #expect(try !cache.isValid("1") && !cache.isValid("3"))
    try await store.close()
  }

  @Test("exactly the 150 entries that were used last remain, also after a close and after a kill")
  func capacity() async throws {
    var store = try machine.open()
    for number in 0..<20 { try await store.put("a/mine\(number)", "mine") }
    var cache = try store.cache(prefix: "a/")
    var chance = SeededGenerator(seed: 5)
    var order: [String] = []
    func use(_ key: String) {
      order.removeAll { $0 == key }
      order.append(key)
      if order.count > 150 { order.removeFirst() }
    }
    for number in 0..<10_000 {
      try await cache.put("k\(number)", Array("value \(number)".utf8))
      use("k\(number)")
      for _ in 0..<chance.int(below: 3) {
        let key = chance.pick(order) ?? ""
        #expect(try cache.value(forKey: key) != nil)
        use(key)
      }
    }
    func keys() throws -> [String] {
      try cache.entries().filter { !$0.isOwned }.map(\.key.text).sorted()
    }
    #expect(try keys() == order.sorted())
    try await store.close()
    store = try machine.open()
    cache = try store.cache(prefix: "a/")
    #expect(try keys() == order.sorted())
    // The order survived, too: what comes next takes the place of the one that is due.
    for number in 0..<40 {
      try await cache.put("n\(number)", [1])
      use("n\(number)")
    }
    #expect(try keys() == order.sorted())
    // A kill takes the uses since the order was written, and nothing else.
    for key in order.prefix(64) { _ = try cache.value(forKey: key) }
    for key in order.prefix(64) { use(key) }
    machine.disk.kill()
    machine.disk.restart()
    store = try machine.open()
    cache = try store.cache(prefix: "a/")
    for number in 0..<80 {
      try await cache.put("m\(number)", [1])
      use("m\(number)")
    }
    #expect(try keys() == order.sorted())
    #expect(try cache.count == 150)
    #expect(try store.all(prefix: "a/mine").count == 20)
    try await store.close()
  }

  @Test("the entry that makes room goes in the same commit")
  func commit() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(capacity: 2))
    for key in ["1", "2"] { try await cache.put(key, [1]) }
    let before = store.lastSequence
    try await cache.put("3", [1])
    #expect(store.lastSequence == before + 2)
    for sequence in 1...store.lastSequence {
      #expect(try store.view(at: sequence).all(prefix: "a/").count <= 3)
    }
    #expect(try cache.entries().map(\.key) == ["2", "3"])
    #expect(cache.counts.evictions == 1)
    try await store.close()
  }

  @Test("bytes are bounded, and a batch that does not fit by itself keeps what it puts last")
  func bytes() async throws {
    let store = try machine.open()
    let policy = CachePolicy(capacity: nil, bytes: 1_000)
    var cache = try store.cache(prefix: "a/", policy: policy)
    for number in 0..<50 { try await cache.put("\(number)", [UInt8](repeating: 1, count: 96)) }
    #expect(try cache.status.bytes <= 1_000 && cache.count == 10)
    var batch = WriteBatch()
    let options = PutOptions(storageClass: .cache)
    for number in 0..<30 {
      try batch.put("a/b\(number)", [UInt8](repeating: 1, count: 95), options: options)
    }
    try batch.put("mine", "1")
    try await store.write(batch)
    #expect(try cache.entries().map(\.key.text).sorted() == (20..<30).map { "b\($0)" })
    #expect(try cache.count == 10 && cache.status.bytes <= 1_000)
    try await cache.put("large", [UInt8](repeating: 1, count: 2_000))
    #expect(try cache.count == 10 && cache.value(forKey: "large") == nil)
    cache = try store.cache(prefix: "a/", policy: CachePolicy(capacity: 1))
    try await cache.put("1", [1])
    try await cache.put("2", [1])
    #expect(try cache.count == 1)
    #expect(try store.text(forKey: "mine") == "1")
    try await store.close()
  }

  @Test("a value that is too large for a cache makes no other one go, and touches cost no room")
  func tooLarge() async throws {
    var store = try machine.open()
    let policy = CachePolicy(capacity: nil, bytes: 1_000)
    var cache = try store.cache(prefix: "a/", policy: policy)
    for number in 0..<9 { try await cache.put("\(number)", [UInt8](repeating: 1, count: 96)) }
    try await cache.put("large", [UInt8](repeating: 1, count: 2_000))
    #expect(try cache.entries().count == 9)
    try await store.close()
    store = try machine.open()
    cache = try store.cache(prefix: "a/", policy: policy)
    try await cache.markStale(labels: .everything)
    #expect(try cache.status.bytes == 9 * 99)
    try await store.close()
  }

  @Test("entries that were touched past the cache make room all the same")
  func touchedElsewhere() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(capacity: 5))
    for number in 0..<5 { try await cache.put("\(number)", [1]) }
    for number in 0..<5 { try await store.touch("a/\(number)") }
    for number in 5..<10 { try await cache.put("\(number)", [1]) }
    #expect(try cache.entries().map(\.key.text) == ["5", "6", "7", "8", "9"])
    // A key that became the user's makes no room for another one.
    try await store.put("a/5", "mine")
    try await cache.put("10", [1])
    #expect(try cache.entries().map(\.key.text) == ["10", "5", "6", "7", "8", "9"])
    try await store.close()
  }

  @Test("entries make room that were touched past the cache, also once compaction has dropped one")
  func touchedElsewhereAndCompacted() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(capacity: 3))
    try await cache.put("1", [1])
    try await cache.markStale(keys: ["1"])
    try await cache.put("2", [1])
    try await store.touch("a/1")
    try await cache.put("3", [1])
    try await store.compact()
    for number in 4..<8 {
      try await cache.put("\(number)", [1])
      #expect(try cache.entries().count == 3 && cache.status.entries == 3)
    }
    #expect(try cache.entries().map(\.key.text) == ["5", "6", "7"])
    try await store.close()
  }

  @Test("values of the user's own are valid, are never written over and never given up")
  func owned() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(capacity: 2))
    try await store.put("a/mine", "1")
    try await cache.put("theirs", [1])
    for number in 0..<5 { try await cache.put("\(number)", [1]) }
    let error = await #expect(throws: TidemarkError.self) { try await cache.put("mine", [2]) }
    #expect(error?.code == .conflict)
    #expect(try await cache.remove("mine") == false)
    try await cache.removeAll()
    machine.clock.advance(by: .seconds(10_000))
    let mine = try #require(try cache.entry(forKey: "mine"))
    #expect(mine.isOwned && mine.isValid && mine.validUntil == nil)
    // A user's edit of a cached value makes it the user's; so does a delete.
    try await cache.put("edited", [1])
    try await store.put("a/edited", "2")
    try await cache.put("deleted", [1])
    try await store.delete("a/deleted")
    for key in ["edited", "deleted"] {
      let error = await #expect(throws: TidemarkError.self) { try await cache.put(key, [2]) }
      #expect(error?.code == .conflict)
    }
    for number in 0..<5 { try await cache.put("\(number)", [1]) }
    #expect(try store.text(forKey: "a/edited") == "2")
    #expect(try cache.count == 2)
    try await store.close()
  }

  @Test("a put of cached data by any other way does not hide what the user wrote either")
  func otherWays() async throws {
    let store = try machine.open()
    try await store.put("k", "mine")
    let options = PutOptions(storageClass: .cache)
    #expect(await code { try await store.put("k", "theirs", options: options) } == .conflict)
    try await store.put("new", "theirs", options: options, if: .absent)
    try await store.put("new", "theirs too", options: options)
    #expect(try store.text(forKey: "k") == "mine" && store.text(forKey: "new") == "theirs too")
    try await store.close()
  }

  @Test("an undo takes back what the user did, and a clearing gives cached values up")
  func undo() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    try await cache.put("1", [1])
    try await cache.put("edited", [1])
    try await store.put("mine", "1")
    let before = store.lastSequence
    try await cache.put("1", [2])
    try await cache.put("2", [2])
    try await store.put("a/edited", "mine")
    try await store.put("mine", "2")
    try await store.undo(since: before)
    #expect(try cache.value(forKey: "1") == [2] && cache.value(forKey: "2") == [2])
    #expect(try store.text(forKey: "mine") == "1")
    #expect(try cache.entry(forKey: "edited")?.isOwned == true)
    #expect(try store.value(forKey: "a/edited") == [1])
    #expect(try await store.clear(prefix: "a/") == 3)
    try await cache.put("1", [3])
    #expect(try cache.entries().map(\.key) == ["1"])
    try await store.close()
  }

  @Test("a clock that is set back or forward leaves values valid for twice their age at most")
  func clock() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    try await cache.put("k", [1])
    machine.clock.jump(by: .seconds(-30))
    #expect(try cache.isValid("k"))
    machine.clock.jump(by: .seconds(-1_000_000))
    #expect(try !cache.isValid("k"))
    try await cache.put("new", [1])
    #expect(try cache.isValid("new"))
    machine.clock.advance(by: .seconds(59))
    #expect(try cache.isValid("new"))
    machine.clock.advance(by: .seconds(2_000_000))
    #expect(try !cache.isValid("new") && !cache.isValid("k"))
    try await store.close()
  }

  @Test("entries that are valid no more go when that is asked for, at once or after a while")
  func removeStale() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(maxAge: .seconds(60)))
    try await cache.put("old", [1])
    machine.clock.advance(by: .seconds(100))
    try await cache.put("new", [1])
    try await cache.put("ever", [1], maxAge: .seconds(Int64.max))
    #expect(try await cache.removeStale(for: .seconds(41)) == 0)
    #expect(try await cache.removeStale(for: .seconds(40)) == 1)
    #expect(try await cache.removeStale() == 0)
    machine.clock.advance(by: .seconds(61))
    #expect(try await cache.removeStale() == 1)
    #expect(try cache.entries().map(\.key) == ["ever"])
    try await store.close()
  }

  @Test("prefixes that overlap, are empty or too long are refused")
  func prefixes() throws {
    let store = try machine.open()
    _ = try store.cache(prefix: "a/b/")
    for prefix in ["a/", "a/b/c", "", String(repeating: "x", count: 1_025)] {
      #expect(code { _ = try store.cache(prefix: prefix) } == .invalidArgument)
    }
    _ = try store.cache(prefix: "a/c/")
    try store.blocking.close()
  }

  @Test("an order that was written beside the log and is damaged is done without")
  func damagedOrder() async throws {
    var store = try machine.open()
    var cache = try store.cache(prefix: "a/", policy: CachePolicy(capacity: 3))
    for key in ["1", "2", "3"] { try await cache.put(key, [1]) }
    _ = try cache.value(forKey: "1")
    try await store.close()
    let names = try machine.disk.list("/store/hints")
    #expect(names.count == 1)
    for name in names {
      let file = try machine.disk.open("/store/hints/" + name, .readWrite)
      try file.writeFully([UInt8](repeating: 0xff, count: 9).rawSpan, at: 60)
      file.close()
    }
    store = try machine.open()
    cache = try store.cache(prefix: "a/", policy: CachePolicy(capacity: 3))
    try await cache.put("4", [1])
    #expect(try cache.entries().map(\.key) == ["2", "3", "4"])
    try await store.close()
  }
}
