import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

/// A collection that is given by closures.
struct ClosureCollection: MirrorSource {
  var hash: @Sendable () async throws -> [UInt8] = { [1] }
  var items: @Sendable ((MirrorItem) throws -> Void) async throws -> Void
  var value: @Sendable (MirrorItem) async throws -> MirrorValue<[UInt8]> = { item in
    MirrorValue(item.key.bytes)
  }

  func collectionHash() async throws -> [UInt8] { try await hash() }
  func list(_ add: @Sendable (MirrorItem) throws -> Void) async throws { try await items(add) }
  func fetch(_ item: MirrorItem) async throws -> MirrorValue<[UInt8]> {
    try await value(item)
  }

  static func items(_ count: Int) -> [MirrorItem] {
    (0..<count).map { MirrorItem("k\(1_000 + $0)", hash: [1]) }
  }
}

@Suite("Collections whose source breaks its rules, or fails now and then")
struct MirrorSourceFaultTests {
  struct Failure: Error {}

  let machine = Machine()

  private func cache(_ store: Store) throws -> Cache<[UInt8]> {
    try store.cache(prefix: "c/", policy: .manifest)
  }

  private func options(_ attempts: Int) -> MirrorOptions {
    var options = MirrorOptions()
    options.retry = RetryPolicy(attempts: attempts)
    // Pauses take no time, and no limit ends.
    options.sleep = { if $0 > .seconds(30) { try await Task.sleep(for: .seconds(86_400)) } }
    return options
  }

  @Test("a sync asks again for a hash, a list and an item that fail at first", arguments: 0..<3)
  func retries(part: Int) async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let left = Lock(3)
    @Sendable func fail(_ number: Int) throws {
      guard number == part else { return }
      try left.withLock { left in
        left -= 1
        if left >= 0 { throw Failure() }
      }
    }
    let source = ClosureCollection(
      hash: {
        try fail(0)
        return [1]
      },
      items: { add in
        for item in ClosureCollection.items(20) {
          if item.key == "k1007" { try fail(1) }
          try add(item)
        }
      },
      value: { item in
        if item.key == "k1009" { try fail(2) }
        return MirrorValue(item.key.bytes)
      })
    if part < 2 {
      await #expect(throws: Failure.self) {
        try await cache.sync(with: source, options: options(3))
      }
      left.withLock { $0 = 3 }
    }
    let outcome = try await cache.sync(with: source, options: options(4))
    #expect(outcome.kind == .switched && outcome.added == 20 && outcome.outstanding == 0)
    #expect(left.withLock { $0 } <= 0)
    try await store.close()
  }

  @Test(
    "a list that the library refuses is not asked for again, and neither is one that was cancelled")
  func noRetries() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let lists = Lock(0)
    let bad = ClosureCollection(items: { add in
      lists.withLock { $0 += 1 }
      try add(MirrorItem("k", hash: []))
    })
    #expect(
      await code { try await cache.sync(with: bad, options: options(9)) } == .invalidArgument)
    #expect(lists.withLock { $0 } == 1)
    let cancelled = ClosureCollection(items: { _ in
      lists.withLock { $0 += 1 }
      throw CancellationError()
    })
    await #expect(throws: CancellationError.self) {
      try await cache.sync(with: cancelled, options: options(9))
    }
    #expect(lists.withLock { $0 } == 2)
    try await store.close()
  }

  static let badLabels: [[EntryLabel]] = [
    (0..<65).map { EntryLabel("l\($0)") }, [EntryLabel(String(repeating: "x", count: 256))],
    [EntryLabel("")], ["good", EntryLabel(String(repeating: "y", count: 70_000))],
    (0..<500).map { EntryLabel("\($0)") }, ["good", "", "also"],
  ]

  @Test(
    "an item with labels that cannot be kept is told, and the others are kept", arguments: badLabels
  )
  func labels(labels: [EntryLabel]) async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let isBad = Lock(true)
    let source = ClosureCollection(
      items: { add in for item in ClosureCollection.items(150) { try add(item) } },
      value: { item in
        let isBad = isBad.withLock { $0 } && ["k1003", "k1149"].contains(item.key)
        return MirrorValue(item.key.bytes, labels: isBad ? labels : ["good"])
      })
    var outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.added == 148 && outcome.outstanding == 2)
    #expect(outcome.failures.map(\.key).sorted() == ["k1003", "k1149"])
    #expect(
      outcome.failures.allSatisfy { ($0.error as? TidemarkError)?.code == .invalidArgument })
    #expect(try cache.count == 148 && cache.value(forKey: "k1003") == nil)
    isBad.withLock { $0 = false }
    outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.added == 2 && outcome.outstanding == 0)
    try await store.close()
  }

  @Test("an item that is listed with two hashes is told, and the others are kept")
  func twoHashes() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let more = Lock<[MirrorItem]>([])
    let version = Lock<UInt8>(1)
    let fetched = Lock<[Key]>([])
    let source = ClosureCollection(
      hash: { [version.withLock { $0 }] },
      items: { add in
        for item in ClosureCollection.items(20) + more.withLock({ $0 }) { try add(item) }
      },
      value: { item in
        fetched.withLock { $0.append(item.key) }
        return MirrorValue(item.key.bytes)
      })
    // The same hash again says nothing new.
    more.withLock { $0 = [MirrorItem("k1003", hash: [1]), MirrorItem("k1003", hash: [1])] }
    var outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.added == 20 && outcome.outstanding == 0)
    version.withLock { $0 = 2 }
    more.withLock {
      $0 = [
        MirrorItem("k1003", hash: [2]), MirrorItem("k1007", hash: [1, 1]),
        MirrorItem("new", hash: [1]), MirrorItem("new", hash: [2]),
        MirrorItem("new", hash: [1]), MirrorItem("other", hash: [1]),
      ]
    }
    fetched.withLock { $0 = [] }
    outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.added == 1 && outcome.outstanding == 3)
    #expect(outcome.failures.map(\.key).sorted() == ["k1003", "k1007", "new"])
    #expect(outcome.failures.allSatisfy { ($0.error as? TidemarkError)?.code == .conflict })
    #expect(fetched.withLock { $0 } == ["other"])
    #expect(try cache.value(forKey: "new") == nil && cache.manifest?.outstanding == 3)
    // Which of its hashes is right nobody knows, so that the value which is here may be an old one.
    #expect(try !cache.isValid("k1003") && !cache.isValid("k1007") && cache.isValid("k1008"))
    more.withLock { $0 = [MirrorItem("new", hash: [2]), MirrorItem("other", hash: [1])] }
    outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.added == 1 && outcome.outstanding == 0)
    #expect(try cache.isValid("k1003"))
    try await store.close()
  }

  @Test("a list that passes over what `add` throws is refused all the same")
  func swallowed() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let long = [UInt8](repeating: 1, count: 65_536)
    for item in [
      MirrorItem("k", hash: []), MirrorItem(Key([]), hash: [1]),
      MirrorItem("k", hash: [UInt8](repeating: 0, count: 65)), MirrorItem(Key(long), hash: [1]),
    ] {
      let refused = Lock(0)
      let source = ClosureCollection(items: { add in
        for item in ClosureCollection.items(3) + [item] + ClosureCollection.items(9) {
          do { try add(item) } catch { refused.withLock { $0 += 1 } }
        }
      })
      #expect(await code { try await cache.sync(with: source) } == .invalidArgument)
      // It hears of it with each item that follows, so that it can end.
      #expect(refused.withLock { $0 } == 10)
    }
    #expect(store.lastSequence == 0)
    try await store.close()
  }

  @Test("a table beyond its bounds takes nothing more, whoever passes over that")
  func bounded() throws {
    var table = ItemTable(prefixLength: 2)
    let key = [UInt8](repeating: 7, count: 65_000), hash: [UInt8] = [1]
    var refused = 0
    let rounds = Limits.collectionBytes / 65_000 + 40
    for _ in 0..<rounds {
      do { try table.add(key.rawSpan, hash: hash.rawSpan) } catch {
        #expect(error.code == .limitExceeded)
        refused += 1
      }
    }
    #expect(refused >= 40 && table.count == rounds - refused)
  }
}
