import Testing
import Tidemark
import TidemarkTestKit

@Suite("Attachments of a store")
struct AttachmentTests {
  let machine = Machine()

  private func content(_ length: Int) -> [UInt8] {
    var chance = SeededGenerator(seed: 3)
    return chance.bytes(length)
  }

  @Test("an entry and its attachment are there together, after a restart as well")
  func together() async throws {
    var store = try machine.open()
    let photo = content(300_000)
    let staged = try await store.attach(photo)
    try await store.put(
      "photo/1", "{\"width\":4}", labels: ["2026"], options: PutOptions(attachment: staged))
    try await store.put("note", "no photo")
    try await store.close()
    store = try machine.open(.write)
    let entry = try #require(try store.entry(forKey: "photo/1"))
    #expect(entry.attachment == staged.reference && entry.value.text == "{\"width\":4}")
    #expect(entry.attachment?.length == 300_000)
    let reader = try #require(try store.attachment(forKey: "photo/1"))
    #expect(try reader.read(0..<300_000) == photo)
    #expect(try reader.read(65_530..<65_550) == Array(photo[65_530..<65_550]))
    #expect(try store.attachment(forKey: "note") == nil)
    #expect(try store.attachment(forKey: "absent") == nil)
    #expect(try store.attachmentUsage().count == 1)
    try await store.close()
  }

  @Test("content is written and read in chunks, whatever their lengths")
  func chunks() async throws {
    let store = try machine.open()
    let all = content(200_000)
    let stream = AsyncStream<[UInt8]> { continuation in
      for start in stride(from: 0, to: all.count, by: 1_237) {
        continuation.yield(Array(all[start..<min(start + 1_237, all.count)]))
      }
      continuation.finish()
    }
    let staged = try await store.attach(chunks: stream)
    try await store.put("k", "", options: PutOptions(attachment: staged))
    var read: [UInt8] = []
    for try await chunk in try #require(try store.attachment(forKey: "k")).chunks { read += chunk }
    #expect(read == all)
    try await store.close()
  }

  @Test("a source that fails midway leaves nothing")
  func failure() async throws {
    struct Broken: Error {}
    let store = try machine.open()
    let stream = AsyncThrowingStream<[UInt8], any Error> { continuation in
      continuation.yield(content(100_000))
      continuation.finish(throwing: Broken())
    }
    await #expect(throws: Broken.self) { try await store.attach(chunks: stream) }
    #expect(try machine.disk.list("store/attachments").isEmpty)
    try await store.close()
  }

  @Test("a batch keeps the attachments that it names until it is committed")
  func batch() async throws {
    let store = try machine.open()
    var batch = WriteBatch()
    for name in ["a", "b"] {
      let staged = try await store.attach(name)
      try batch.put(name, "", options: PutOptions(attachment: staged))
    }
    try await store.sweepAttachments()
    try await store.write(batch)
    try await store.sweepAttachments()
    #expect(try store.attachment(forKey: "a")?.read(0..<9).text == "a")
    #expect(try store.attachment(forKey: "b")?.read(0..<9).text == "b")
    try await store.close()
  }

  @Test("an undo brings an attachment back that the history has kept")
  func undo() async throws {
    let store = try machine.open()
    let staged = try await store.attach("old")
    try await store.put("k", "1", options: PutOptions(attachment: staged))
    let before = store.lastSequence
    try await store.put("k", "2")
    #expect(try store.attachment(forKey: "k") == nil)
    try await store.undo(since: before)
    #expect(try store.attachment(forKey: "k")?.read(0..<9).text == "old")
    try await store.close()
  }

  @Test("a cache counts attachments as bytes of its entries, and gives them up with these")
  func cache() async throws {
    let store = try machine.open()
    let cache = try store.cache(
      prefix: "c/", policy: CachePolicy(capacity: nil, bytes: 250_000))
    for key in ["1", "2", "3"] {
      try await cache.put(
        key, [1], attachment: try await store.attach(content(100_000) + Array(key.utf8)))
    }
    #expect(try cache.entries().map(\.key.text) == ["2", "3"])
    #expect(try cache.status.bytes > 200_000)
    try await store.sweepAttachments()
    #expect(try store.attachmentUsage().count == 2)
    #expect(try cache.attachment(forKey: "3")?.length == 100_001)
    try await store.close()
    let again = try machine.open(.write)
    let reopened = try again.cache(
      prefix: "c/", policy: CachePolicy(capacity: nil, bytes: 250_000))
    #expect(try reopened.status.bytes > 200_000)
    try await again.close()
  }

  @Test("a file of the machine is copied in parts")
  func file() async throws {
    let store = try machine.open()
    let error = await #expect(throws: TidemarkError.self) {
      try await store.attach(contentsOf: "/nothing/is/here")
    }
    #expect(error?.code == .inputOutput || error?.code == .storeMissing)
    try await store.close()
  }

  @Test("a store that is read only, closed or suspended takes no attachment")
  func refused() async throws {
    let store = try machine.open()
    try await store.put("k", "1")
    let reader = try machine.open(.readOnly)
    #expect(throws: TidemarkError.self) { try reader.attachmentWriter() }
    try await store.close()
    #expect(throws: TidemarkError.self) { try store.attachmentWriter() }
    try await reader.close()
  }
}
