import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

@Suite("Labels and attachments of what a source answers", .timeLimit(.minutes(20)))
struct FetchedContentTests {
  let machine = Machine()

  @Test("an answer that says nothing of labels leaves those that the key has")
  func labels() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    try await cache.put("k", [1], labels: ["x", "y"])
    let silent = CacheSource<[UInt8]> { _ in .value([2]) }
    let read = try await cache.read("k", .networkFirst, from: silent)
    #expect(read.fetched?.labels == ["x", "y"] && read.value == [2])
    #expect(try await cache.read("other", from: silent).fetched?.labels == [])
    _ = try await cache.value(for: "k", policy: .networkFirst) { [3] }
    try await cache.markStale(labels: .all("y"))
    #expect(try !cache.isValid("k"))
    let saying = CacheSource<[UInt8]> { _ in .value([4], labels: ["z"]) }
    #expect(try await cache.read("k", .refresh, from: saying).fetched?.labels == ["z"])
    let emptying = CacheSource<[UInt8]> { _ in .value([5], labels: []) }
    #expect(try await cache.read("k", .refresh, from: emptying).fetched?.labels == [])
    // A put says all about an entry.
    try await cache.put("k", [1], labels: ["x"])
    try await cache.put("k", [2])
    #expect(try cache.peek("k")?.labels == [])
    try await store.close()
  }

  @Test("a fetched entry has an attachment exactly when the source gave one")
  func attachments() async throws {
    let store = try machine.open()
    let cache = try store.cache(prefix: "a/")
    let bytes = [UInt8](repeating: 7, count: 100_000)
    let source = CacheSource<[UInt8]> { request in
      .value(request.key.bytes, attachment: try await store.attach(bytes))
    }
    let read = try await cache.read("k", .cacheFirst, from: source)
    #expect(read.fetched?.attachment?.length == 100_000)
    try await store.sweepAttachments()
    #expect(try cache.attachment(forKey: "k")?.read(0..<200_000) == bytes)
    #expect(try cache.status.bytes > 100_000)
    let without = CacheSource<[UInt8]> { _ in .value([1]) }
    #expect(try await cache.read("k", .refresh, from: without).fetched?.attachment == nil)
    try await store.sweepAttachments()
    #expect(try store.attachmentUsage().count == 0)
    try await store.close()
  }

  @Test("an answer that cannot be kept is the source's fault, and what is there serves")
  func unkeepable() async throws {
    struct Unwritable: Error {}
    let store = try machine.open()
    let elsewhere = try Machine().open()
    let foreign = try await elsewhere.attach([1, 2, 3])
    let coding = CacheCoding<[UInt8]>(
      encode: { if $0 == [0] { throw Unwritable() } else { $0 } }, decode: { $0 })
    let cache = try store.cache(prefix: "a/", policy: CachePolicy(), coding: coding)
    let answers: [FetchedValue<[UInt8]>] = [
      .value([1], labels: (0..<65).map { EntryLabel("\($0)") }), .value([1], labels: [""]),
      .value([1], labels: [EntryLabel(String(repeating: "x", count: 256))]),
      .value([1], hash: [UInt8](repeating: 1, count: 65)), .value([0]),
      .value([1], attachment: foreign),
    ]
    for answer in answers {
      let source = CacheSource<[UInt8]> { _ in answer }
      let first = try await cache.read("k", .cacheFirst, from: source)
      #expect(first.kind == .neither && first.error is TidemarkError)
      try await cache.put("k", [9], maxAge: .zero)
      let second = try await cache.read("k", .networkFirst, from: source)
      #expect(second.kind == .storedOnly && second.value == [9] && second.error is TidemarkError)
      try await cache.remove("k")
    }
    try await store.close()
    try await elsewhere.close()
  }
}
