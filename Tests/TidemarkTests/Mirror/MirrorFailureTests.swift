import Testing
import Tidemark
@testable import TidemarkCaches
import TidemarkEngine
import TidemarkTestKit

@Suite("Collections whose source or disk fails")
struct MirrorFailureTests {
  let machine = Machine()

  private func keys(_ numbers: Range<Int>) -> [Key] { numbers.map { "k\(1_000 + $0)" } }

  private func cache(_ store: Store) throws -> Cache<[UInt8]> {
    try store.cache(prefix: "c/", policy: .manifest)
  }

  @Test("a few items that fail are told and fetched later, and do not hold the others")
  func outstanding() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<20))
    try await cache.sync(with: source)
    for key in keys(0..<20) { await source.set(key, 2) }
    await source.set("new", 2)
    await source.fail(["k1003", "new"])
    var outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.refetched == 19 && outcome.outstanding == 2)
    #expect(outcome.failures.map(\.key.text).sorted() == ["k1003", "new"])
    #expect(outcome.failures.allSatisfy { $0.error is ScriptedCollection.Failure })
    #expect(try cache.manifest?.outstanding == 2)
    // The value that is known to be an old one stays and is stale.
    #expect(try cache.texts()["k1003"] == "k1003 1" && !cache.isValid("k1003"))
    #expect(try cache.value(forKey: "new") == nil)
    await source.forgetCounts()
    let sequence = store.lastSequence
    outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .unchanged && outcome.outstanding == 2)
    #expect(store.lastSequence == sequence)
    await source.fail([])
    outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.added == 1 && outcome.refetched == 1)
    #expect(await source.fetched.count == 4)
    #expect(try cache.manifest?.outstanding == 0 && cache.isValid("k1003"))
    try await store.close()
  }

  @Test("a source of which most items fail changes nothing, and what came is not fetched again")
  func dead() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<40))
    await source.fail(Set(keys(0..<40)))
    var outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .held && outcome.outstanding == 40)
    #expect(await source.fetched.count < 40)
    #expect(try cache.manifest == nil && cache.count == 0)
    await source.fail(Set(keys(10..<40)))
    outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .held && outcome.outstanding == 30)
    #expect(try cache.manifest == nil && cache.texts().isEmpty)
    await source.fail([])
    await source.forgetCounts()
    outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.resumed == 10 && outcome.added == 40)
    // Questions of the sync before may come late.
    #expect(await Set(source.fetched) == Set(keys(10..<40)))
    try await store.close()
  }

  @Test("a sync that was killed goes on where it was, and readers see the old generation till then")
  func kills() async throws {
    let source = ScriptedCollection(keys(0..<500))
    var store = try machine.open()
    var cache = try cache(store)
    try await cache.sync(with: source)
    let old = try cache.texts()
    for key in keys(0..<500) { await source.set(key, 2) }
    await source.forgetCounts()
    for round in 1...4 {
      let disk = machine.disk
      let count = Lock(0)
      await source.before { _ in
        if count.withLock({
          $0 += 1; return $0
        }) == 100 {
          disk.kill()
        }
      }
      await #expect(throws: (any Error).self) { try await cache.sync(with: source) }
      machine.disk.restart()
      store = try machine.open()
      cache = try self.cache(store)
      #expect(try cache.view().texts() == old, "round \(round)")
    }
    await source.before { _ in }
    let outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.refetched == 500 && outcome.resumed > 100)
    // A kill takes what was fetched since the last commit, 64 items at most and those under way.
    #expect(await source.fetched.count < 500 + 4 * (64 + 8 + 1))
    #expect(try cache.texts()["k1499"] == "k1499 2")
    try await store.close()
  }

  @Test("a sync that was cancelled keeps what it has fetched")
  func cancellation() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<200))
    let count = Lock(0)
    let task = Lock<Task<MirrorOutcome, any Error>?>(nil)
    await source.before { _ in
      if count.withLock({
        $0 += 1; return $0
      }) == 150 {
        task.withLock { $0?.cancel() }
      }
    }
    await source.hold()
    let sync = Task { try await cache.sync(with: source) }
    task.withLock { $0 = sync }
    while await source.running < 8 { await Task.yield() }
    await source.release()
    await #expect(throws: CancellationError.self) { try await sync.value }
    #expect(try cache.manifest == nil && cache.manifestFailure is CancellationError)
    let outcome = try await cache.sync(with: source)
    #expect(outcome.added == 200 && outcome.resumed >= 128)
    #expect(cache.manifestFailure == nil)
    try await store.close()
  }

  @Test("a source that hangs and heeds no cancellation costs its time and nothing else")
  func timeouts() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<30))
    try await cache.sync(with: source)
    await source.set("k1000", 2)
    await source.set("new", 2)
    let gate = ScriptedCollection()
    await gate.set("gate", 1)
    await gate.hold()
    await source.before { key in
      if key == "k1000" { _ = try await gate.fetch(MirrorItem("gate", hash: [1])) }
    }
    var options = MirrorOptions()
    // Time passes for the item that hangs, and for nothing else.
    let hasPassed = Lock(false)
    options.sleep = { _ in
      while true {
        try Task.checkCancellation()
        await Task.yield()
        guard await gate.running > 0 else { continue }
        // The timers of what came before the gate were cancelled before anybody came to it.
        try Task.checkCancellation()
        if hasPassed.withLock({ passed in
          defer { passed = true }
          return !passed
        }) {
          return
        }
      }
    }
    options.parallelFetches = 1
    let outcome = try await cache.sync(with: source, options: options)
    #expect(outcome.kind == .switched && outcome.outstanding == 1 && outcome.added == 1)
    #expect((outcome.failures.first?.error as? TidemarkError)?.code == .timedOut)
    await gate.release()
    try await store.close()
  }

  @Test("an item that has changed since it was listed is left to the next sync")
  func changedMeanwhile() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<10))
    await source.before { key in if key == "k1002" { await source.set("k1007", 9) } }
    var options = MirrorOptions()
    options.parallelFetches = 1
    var outcome = try await cache.sync(with: source, options: options)
    #expect(outcome.outstanding == 1 && outcome.failures.first?.key == "k1007")
    #expect((outcome.failures.first?.error as? TidemarkError)?.code == .conflict)
    #expect(try cache.value(forKey: "k1007") == nil)
    outcome = try await cache.sync(with: source)
    #expect(outcome.outstanding == 0 && outcome.added == 1)
    #expect(try cache.texts()["k1007"] == "k1007 9")
    try await store.close()
  }

  @Test("a disk that is full leaves the old generation, says so, and lets the sync go on later")
  func diskFull() async throws {
    let store = try machine.open()
    let cache = try cache(store)
    let source = ScriptedCollection(keys(0..<50))
    try await cache.sync(with: source)
    let old = try cache.texts()
    for number in 0..<4_000 { await source.set("x\(number)", 2) }
    machine.disk.capacity = machine.disk.usedBytes + (64 << 10)
    #expect(await code { try await cache.sync(with: source) } == .noSpace)
    #expect((cache.manifestFailure as? TidemarkError)?.code == .noSpace)
    #expect(try cache.texts() == old && cache.manifest?.items == 50)
    machine.disk.capacity = nil
    let outcome = try await cache.sync(with: source)
    #expect(outcome.kind == .switched && outcome.added == 4_000 && cache.manifestFailure == nil)
    try await cache.discardStaged()
    #expect(try cache.manifest?.items == 4_050)
    try await store.close()
  }

  @Test("a list with absurd keys or hashes is refused and nothing changes")
  func absurd() async throws {
    struct Absurd: MirrorSource {
      var item: MirrorItem
      func collectionHash() async throws -> [UInt8] { [1] }
      func list(_ add: @Sendable (MirrorItem) throws -> Void) async throws { try add(item) }
      func fetch(_ item: MirrorItem) async throws -> MirrorValue<[UInt8]> { MirrorValue([]) }
    }
    let store = try machine.open()
    let cache = try cache(store)
    let long = [UInt8](repeating: 1, count: 65_535)
    for item in [
      MirrorItem(Key([]), hash: [1]), MirrorItem(Key(long), hash: [1]),
      MirrorItem("k", hash: []), MirrorItem("k", hash: [UInt8](repeating: 1, count: 65)),
    ] {
      let result = await code { try await cache.sync(with: Absurd(item: item)) }
      #expect(result == .invalidArgument)
    }
    #expect(store.lastSequence == 0)
    try await store.close()
  }
}
