import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

@Suite("Labels and attachments of a collection's items")
struct MirrorValueTests {
  let machine = Machine()

  private func cache(_ store: Store) throws -> Cache<[UInt8]> {
    try store.cache(prefix: "c/", policy: .manifest)
  }

  private static func content(_ key: Key, _ version: UInt8) -> [UInt8] {
    key.bytes + [UInt8](repeating: version, count: 50_000)
  }

  /// Ten items of one version, each with an attachment in the store.
  private func source(_ store: Store, _ version: UInt8) -> ClosureCollection {
    ClosureCollection(
      hash: { [version] },
      items: { add in
        for item in ClosureCollection.items(10) { try add(MirrorItem(item.key, hash: [version])) }
      },
      value: { item in
        let attachment = try await store.attach(Self.content(item.key, version))
        return MirrorValue([version], attachment: attachment)
      })
  }

  @Test("items that are fetched again without labels keep theirs")
  func labels() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let given = Lock<[EntryLabel]?>(["x", "y"])
    let version = Lock<UInt8>(1)
    let source = ClosureCollection(
      hash: { [version.withLock { $0 }] },
      items: { add in
        for item in ClosureCollection.items(5) {
          try add(MirrorItem(item.key, hash: [version.withLock { $0 }]))
        }
      },
      value: { item in MirrorValue(item.key.bytes, labels: given.withLock { $0 }) })
    let expected: [([EntryLabel]?, [EntryLabel])] = [
      (["x", "y"], ["x", "y"]), (nil, ["x", "y"]), (["z"], ["z"]), (nil, ["z"]), ([], []),
    ]
    for (number, (labels, kept)) in expected.enumerated() {
      given.withLock { $0 = labels }
      version.withLock { $0 = UInt8(number + 1) }
      #expect(try await cache.sync(with: source).kind == .switched)
      #expect(try cache.entries().allSatisfy { $0.labels == kept }, "\(number)")
    }
    try await store.close()
  }

  @Test("attachments of items come with the switch, and those of the generation before go")
  func attachments() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    for version in [UInt8(1), 2] {
      let outcome = try await cache.sync(with: source(store, version))
      #expect(outcome.kind == .switched && outcome.outstanding == 0)
      try await store.sweepAttachments()
      for item in ClosureCollection.items(10) {
        let reader = try #require(try cache.attachment(forKey: item.key))
        #expect(try reader.read(0..<100_000) == Self.content(item.key, version))
      }
    }
    try await store.compact()
    try await store.sweepAttachments()
    #expect(try store.attachmentUsage().count == 10)
    try await store.close()
  }

  @Test("attachments of items that were fetched before a cancellation are not fetched again")
  func resumed() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    var source = source(store, 1)
    let fetch = source.value
    let task = Lock<Task<MirrorOutcome, any Error>?>(nil)
    let count = Lock(0)
    source.value = { item in
      let number = count.withLock { count in
        count += 1
        return count
      }
      if number == 6 { task.withLock { $0?.cancel() } }
      return try await fetch(item)
    }
    var options = MirrorOptions()
    options.parallelFetches = 1
    let slow = source
    let begun = options
    let sync = task.withLock { task in
      let sync = Task { try await cache.sync(with: slow, options: begun) }
      task = sync
      return sync
    }
    await #expect(throws: CancellationError.self) { try await sync.value }
    try await store.sweepAttachments()
    let staged = try store.attachmentUsage().count
    #expect(staged >= 1)
    let outcome = try await cache.sync(with: self.source(store, 1))
    #expect(outcome.added == 10 && outcome.resumed == staged)
    for item in ClosureCollection.items(10) {
      #expect(try cache.attachment(forKey: item.key)?.length == 50_005)
    }
    try await store.close()
  }

  @Test("an item whose attachment lies in another store is told, and the others are kept")
  func foreign() async throws {
    let store = try machine.open()
    let elsewhere = try Machine().open()
    let cache = try cache(store)
    var source = source(store, 1)
    let fetch = source.value
    source.value = { item in
      guard item.key == "k1004" else { return try await fetch(item) }
      return MirrorValue([1], attachment: try await elsewhere.attach([9]))
    }
    let outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.added == 9)
    #expect(outcome.failures.map(\.key) == ["k1004"])
    try await store.close()
    try await elsewhere.close()
  }
}
