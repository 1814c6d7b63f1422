import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

@Suite("Lists in pages")
struct PagingTests {
  let machine = Machine()

  private func page(_ text: String) -> [UInt8] { Array(text.utf8) }

  @Test("a new first page makes the older pages void, in the same commit")
  func generations() async throws {
    let store = try machine.open()
    let list = try store.cache(prefix: "c/").list("inbox")
    #expect(try list.reader() == nil)
    let first = try await list.begin(page("old 0"))
    #expect(try await first.put(page("old 1")))
    #expect(try await first.put(page("old 2")))
    let before = store.lastSequence
    let second = try await list.begin(page("new 0"))
    #expect(second.generation > first.generation)
    let commit = try #require(try store.commit(holding: store.lastSequence))
    #expect(commit.sequences == before + 1..<store.lastSequence + 1 && commit.count == 4)
    #expect(try store.found(EntryQuery(prefix: "c/")).count == 1)
    let reader = try #require(try list.reader())
    #expect(try reader.page(0)?.text == "new 0" && reader.page(1) == nil && reader.pages == 1)
    try await store.close()
  }

  @Test("a reader that pages on sees its generation to its end")
  func readers() async throws {
    let store = try machine.open()
    let list = try store.cache(prefix: "c/").list("inbox")
    let other = try store.cache(prefix: "c/").list("outbox")
    try await other.begin(page("other"))
    let begun = try await list.begin(page("old 0"))
    try await begun.put(page("old 1"))
    let reader = try #require(try list.reader())
    try await list.begin(page("new 0"))
    try await store.compact()
    #expect(try !reader.isNewest && reader.pages == 2)
    #expect(try reader.page(0)?.text == "old 0" && reader.page(1)?.text == "old 1")
    #expect(try await reader.put(page("old 2")) == false)
    #expect(try reader.page(2)?.text == "old 2" && reader.page(3) == nil && reader.pages == 3)
    #expect(try begun.page(1)?.text == "old 1")
    let newest = try #require(try list.reader())
    #expect(try newest.page(0)?.text == "new 0" && newest.page(1) == nil)
    #expect(try other.reader()?.page(0)?.text == "other")
    try await store.close()
  }

  @Test("the newest generation is found again after a kill, and what is left of others is not")
  func kills() async throws {
    var store = try machine.open()
    var list = try store.cache(prefix: "c/").list("inbox")
    let reader = try await list.begin(page("0"))
    try await reader.put(page("1"))
    machine.disk.kill()
    machine.disk.restart()
    store = try machine.open()
    let cache = try store.cache(prefix: "c/")
    list = cache.list("inbox")
    let again = try #require(try list.reader())
    #expect(again.generation == reader.generation && again.pages == 2)
    // A page whose first one has made room belongs to no list.
    try await cache.remove(list.key(reader.generation, 0))
    #expect(try list.reader() == nil)
    let next = try await list.begin(page("2"))
    #expect(next.generation > reader.generation)
    #expect(try store.found(EntryQuery(prefix: "c/")).count == 1)
    try await store.close()
  }

  @Test("entries of older versions go, those of later ones and of others stay")
  func versions() async throws {
    let store = try machine.open()
    let one = try await store.cache(prefix: "a/", version: 1, policy: .manifest)
    for number in 0..<5_000 { try store.blocking.put("a/mine\(number % 3)", "\(number)") }
    var batch = WriteBatch()
    let options = PutOptions(storageClass: .cache)
    for number in 0..<5_000 { try batch.put("a/v0000000001/\(number)", "1", options: options) }
    try await store.write(batch)
    try await one.sync(with: ScriptedCollection(["k"]))
    let five = try await store.cache(prefix: "a/", version: 5)
    try await five.put("k", page("5"))
    let two = try await store.cache(prefix: "a/", version: 2)
    try await two.put("k", page("2"))
    #expect(
      try store.found() == [
        "a/mine0", "a/mine1", "a/mine2", "a/v0000000002/k", "a/v0000000005/k",
      ])
    #expect(try one.count == 0)
    let again = try await store.cache(prefix: "a/", version: 2)
    #expect(try again.value(forKey: "k")?.text == "2")
    try await store.close()
  }
}
