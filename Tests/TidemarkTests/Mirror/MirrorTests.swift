import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

@Suite("A cache that equals a collection")
struct MirrorTests {
  let machine = Machine()

  private func keys(_ numbers: Range<Int>) -> [Key] { numbers.map { "k\(1_000 + $0)" } }

  private func cache(_ store: Store) throws -> Cache<[UInt8]> {
    try store.cache(prefix: "c/", policy: .manifest)
  }

  @Test("the first sync brings all items, and the second compares one hash")
  func unchanged() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<300))
    await source.listBackwards()
    let outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.added == 300 && outcome.refetched == 0)
    #expect(
      try cache.texts()
        == Dictionary(
          uniqueKeysWithValues: keys(0..<300).map {
            ($0.text, "\($0) 1")
          }))
    #expect(try cache.count == 300 && cache.isValid("k1007"))
    await source.forgetCounts()
    let sequence = store.lastSequence
    #expect(try await cache.sync(with: source).kind == .unchanged)
    #expect(await source.hashes == 1)
    #expect(await source.lists == 0)
    #expect(await source.fetched.isEmpty)
    #expect(store.lastSequence == sequence)
    try await store.close()
  }

  @Test("a changed collection costs what has changed: new, other and absent items, and no more")
  func difference() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<100))
    try await cache.sync(with: source)
    let first = try #require(try cache.manifest)
    for key in keys(10..<15) { await source.set(key, 2, labels: ["second"]) }
    for key in keys(100..<103) { await source.set(key, 2) }
    for key in keys(50..<57) { await source.remove(key) }
    await source.forgetCounts()
    let outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.added == 3 && outcome.refetched == 5)
    #expect(outcome.deleted == 7 && outcome.outstanding == 0)
    #expect(await Set(source.fetched) == Set(keys(10..<15) + keys(100..<103)))
    let texts = try cache.texts()
    #expect(texts.count == 96 && texts["k1012"] == "k1012 2" && texts["k1050"] == nil)
    #expect(try cache.entries(labels: .all("second")).count == 5)
    let second = try #require(try cache.manifest)
    #expect(second.generation > first.generation && second.items == 96)
    #expect(second.collectionHash != first.collectionHash)
    #expect(try store.count(EntryQuery(prefix: "\0tidemark/staged/")) == 0)
    try await store.close()
  }

  @Test("the switch is one commit, and a view that was taken before keeps its generation")
  func views() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<40))
    try await cache.sync(with: source)
    let before = try cache.view()
    let texts = try before.texts()
    for key in keys(0..<40) { await source.set(key, 2) }
    for key in keys(30..<40) { await source.remove(key) }
    // In no moment of the sync does a new view show a part of either.
    await source.before { _ in
      let shown = try cache.view().texts()
      #expect(shown == texts)
    }
    try await cache.sync(with: source)
    try await store.compact()
    #expect(try before.texts() == texts && before.generation != cache.manifest?.generation)
    #expect(try cache.view().texts() == cache.texts() && cache.texts().count == 30)
    let commit = try #require(try store.commit(holding: store.lastSequence))
    #expect(try commit.sequences.contains(cache.manifest?.generation ?? 0))
    try await store.close()
  }

  @Test("values of the user's, and his deletes, stay as they are under the prefix of a collection")
  func owned() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    try await store.put("c/k1001", "mine")
    try await store.put("c/k1002", "mine")
    try await store.delete("c/k1002")
    try await store.put("c/other", "mine")
    let source = ScriptedCollection(keys(0..<5))
    // The user writes a key between the comparison and the switch, too.
    await source.before { key in if key == "k1003" { try await store.put("c/k1004", "mine") } }
    var outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.owned == 2)
    #expect(try cache.texts().keys.sorted() == ["k1000", "k1003"])
    await source.set("k1001", 2)
    outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.owned == 3)
    #expect(try store.text(forKey: "c/k1001") == "mine" && store.text(forKey: "c/k1002") == nil)
    #expect(try store.text(forKey: "c/k1004") == "mine")
    #expect(try store.text(forKey: "c/other") == "mine")
    try await store.close()
  }

  @Test("no more items are fetched at a time than were asked for, and progress is told")
  func bounds() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<50))
    await source.before { _ in for _ in 0..<3 { await Task.yield() } }
    let told = Lock<[MirrorProgress]>([])
    var options = MirrorOptions()
    options.parallelFetches = 3
    options.progress = { progress in told.withLock { $0.append(progress) } }
    try await cache.sync(with: source, options: options)
    #expect(await (1...3).contains(source.mostRunning))
    let last = told.withLock { $0.last }
    #expect(last?.fetched == 50 && last?.total == 50 && last?.bytes == 50 * 7)
    #expect(told.withLock { $0.map(\.fetched) } == Array(1...50))
    try await store.close()
  }

  @Test("entries that are given up make the next sync look at the list again")
  func givenUp() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<20))
    try await cache.sync(with: source)
    try await cache.remove("k1003")
    #expect(try cache.manifest == nil)
    await source.forgetCounts()
    let outcome = try await cache.sync(with: source)
    #expect(outcome.added == 1 && outcome.kind == .switched)
    #expect(await source.fetched == ["k1003"])
    try await store.clear(prefix: "c/")
    #expect(try await cache.sync(with: source).added == 20)
    try await store.clear()
    #expect(try await cache.sync(with: source).added == 20)
    try await store.close()
  }

  @Test("an entry that was marked stale is valid again after a sync that finds it listed as it is")
  func renewal() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<5))
    try await cache.sync(with: source)
    #expect(try await store.markStale(keys: ["c/k1001", "c/k1002"]) == 2)
    #expect(try !cache.isValid("k1001") && cache.isValid("k1003"))
    await source.set("k1002", 2)
    await source.forgetCounts()
    try await cache.sync(with: source)
    #expect(try cache.isValid("k1001") && cache.isValid("k1002"))
    #expect(await source.fetched == ["k1002"])
    try await store.close()
  }

  @Test("keys of the library's are refused to all who write, and no undo or clear leaves a rest")
  func reserved() async throws {
    let store = try machine.open()
    let key: Key = "\0tidemark/staged/c/k1"
    #expect(await code { try await store.put(key, "1") } == .invalidArgument)
    #expect(await code { try await store.put(key, "1", labels: ["a"]) } == .invalidArgument)
    #expect(await code { try await store.delete(key) } == .invalidArgument)
    #expect(await code { try await store.touch(key) } == .invalidArgument)
    #expect(code { try store.blocking.put(key, "1") } == .invalidArgument)
    #expect(code { try store.blocking.delete(key) } == .invalidArgument)
    for prefix in ["\0tidemark/staged/", "\0tidemark/", "\0tidemark", "\0tide", "\0"] as [Key] {
      #expect(code { _ = try store.cache(prefix: prefix) } == .invalidArgument)
    }
    _ = try store.cache(prefix: "\0tidal/")
    var batch = WriteBatch()
    #expect(code { try batch.put(key, "1") } == .invalidArgument)
    try await store.put("\0tidemar", "1")
    let before = store.lastSequence
    let cache = try cache(store)
    try await cache.sync(with: ScriptedCollection(keys(0..<3)))
    try await store.undo(since: before)
    #expect(try cache.manifest?.items == 3 && cache.count == 3)
    try await store.clear()
    #expect(try store.count() == 0)
    try await store.close()
  }

  @Test("a cache with a bound that the collection exceeds is refused, and a second sync beside one")
  func refusals() async throws {
    let store = try machine.open()
    let small = try store.cache(prefix: "c/", policy: CachePolicy(capacity: 4))
    let source = ScriptedCollection(keys(0..<5))
    #expect(await code { try await small.sync(with: source) } == .invalidArgument)
    await source.remove("k1000")
    #expect(try await small.sync(with: source).added == 4)
    let large = try cache(store)
    await source.set("k1000", 1)
    await source.before { _ in
      #expect(await code { try await large.sync(with: source) } == .busy)
    }
    #expect(try await large.sync(with: source).added == 1)
    #expect(large.manifestFailure == nil)
    try await store.close()
  }
}
