import Testing
import Tidemark
import TidemarkTestKit

@Suite("Suspending a store", .timeLimit(.minutes(20)))
struct SuspendTests {
  let machine = Machine()

  /// The same disk as another process sees it.
  private func elsewhere() throws -> Store {
    var configuration = machine.configuration(.write)
    configuration.environment.fileSystem = machine.disk.anotherProcess()
    return try Store.openBlocking(at: "store", configuration: configuration)
  }

  @Test("another process can write between suspending and resuming, and is heard of")
  func another() async throws {
    let store = try machine.open(usesThreads: true)
    try await store.put("a", "1")
    #expect(code { _ = try elsewhere() } == .locked)
    try await store.suspend()
    #expect(store.isSuspended)
    #expect(machine.disk.openFiles == 0)
    #expect(code { _ = try store.value(forKey: "a") } == .suspended)
    #expect(code { _ = try store.count() } == .suspended)
    #expect(await code { try await store.put("b", "1") } == .suspended)
    #expect(code { _ = try store.blocking.put("b", "1", durability: .durable) } == .suspended)
    let other = try elsewhere()
    try other.blocking.put("a", "2")
    #expect(await code { try await store.resume() } == .locked)
    try other.blocking.close()
    try await store.resume()
    #expect(!store.isSuspended)
    #expect(try store.state() == ["a": "2"])
    try await store.put("b", "1")
    try await store.close()
  }

  @Test("a follower waits while the store is suspended and then misses nothing")
  func follower() async throws {
    let store = try machine.open(durability: .durable)
    try await store.put("a", "1")
    try await store.put("b", "1")
    var changes = store.changes(since: .beginning).makeAsyncIterator()
    #expect(try await changes.next()?.entry?.key == "a")
    try await store.suspend()
    let other = try elsewhere()
    try other.blocking.put("c", "1")
    try other.blocking.close()
    let waiting = Task { [changes] in
      var changes = changes
      var keys: [String] = []
      while keys.count < 3, let change = try await changes.next() {
        if let key = change.entry?.key { keys.append(key.text) }
      }
      return keys
    }
    for _ in 0..<100 { await Task.yield() }
    try store.blocking.resume()
    try await store.put("d", "1")
    #expect(try await waiting.value == ["b", "c", "d"])
    try await store.close()
  }

  @Test("a follower whose deletes another process has dropped begins anew")
  func dropped() async throws {
    let store = try machine.open(durability: .durable)
    for key in ["a", "b", "c"] { try await store.put(Key(key), "1") }
    var changes = store.changes(since: .beginning).makeAsyncIterator()
    #expect(try await changes.next()?.entry?.key == "a")
    try await store.suspend()
    let other = try elsewhere()
    try other.blocking.delete("a")
    try other.blocking.compact(dropHistory: true)
    try other.blocking.close()
    try await store.resume()
    var told: [String] = []
    while told.count < 3, let change = try await changes.next() {
      told.append(change.entry?.key.text ?? "reset")
    }
    #expect(told == ["reset", "b", "c"])
    try await store.close()
  }

  /// Suspends on a disk that takes back what it could not sync, and resumes.
  private func lose(_ store: Store) async throws {
    machine.disk.plan = [FaultRule(.syncRevertsPages, .call(1))]
    #expect(await code { try await store.suspend() } == .unknownOutcome)
    machine.disk.plan = .none
    try await store.resume()
  }

  @Test("a follower that has seen nothing of what was lost goes on")
  func lossUnseen() async throws {
    let store = try machine.open()
    try await store.put("a", "1", durability: .durable)
    var changes = store.changes(since: .beginning).makeAsyncIterator()
    #expect(try await changes.next()?.entry?.key == "a")
    try await store.put("lost", "1")
    try await lose(store)
    try await store.put("b", "1", durability: .durable)
    #expect(try await changes.next()?.entry?.key == "b")
    try await store.close()
  }

  @Test("a follower that has seen what was lost is told so")
  func lossSeen() async throws {
    let store = try machine.open()
    try await store.put("a", "1", durability: .durable)
    try await store.put("lost", "1")
    let options = ChangeOptions(delivery: .committed)
    var changes = store.changes(since: .beginning, options: options).makeAsyncIterator()
    for key in ["a", "lost"] { #expect(try await changes.next()?.entry?.key.text == key) }
    try await lose(store)
    try await store.put("b", "1", durability: .durable)
    #expect(await code { _ = try await changes.next() } == .historyDiverged)
    try await store.close()
  }

  @Test("a follower from now on begins at the moment it was made, also when that is no more")
  func lossOfNow() async throws {
    let store = try machine.open()
    try await store.put("a", "1", durability: .durable)
    let stands = store.changes()
    try await store.put("lost", "1")
    let lost = store.changes()
    try await lose(store)
    // The first of them has the sequence of what was lost.
    for key in ["b", "c"] { try await store.put(Key(key), "1", durability: .durable) }
    var changes = stands.makeAsyncIterator()
    #expect(try await changes.next()?.entry?.key == "b")
    changes = lost.makeAsyncIterator()
    #expect(await code { _ = try await changes.next() } == .historyDiverged)
    try await store.close()
  }

  @Test(
    "an entry acknowledged before suspending is there after a power cut",
    arguments: [Durability.async, .buffered, .durable])
  func acknowledged(_ durability: Durability) async throws {
    let store = try machine.open(durability: durability, usesThreads: true)
    let counts = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
      for task in 0..<4 {
        group.addTask {
          for i in 0..<10_000 {
            let code = await code { try await store.put("t\(task)/\(i)", "1") }
            if let code {
              #expect(code == .suspended)
              return (task, i)
            }
            await Task.yield()
          }
          return (task, 10_000)
        }
      }
      while store.lastSequence < 50 { await Task.yield() }
      try await store.suspend()
      return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    #expect(machine.disk.openFiles == 0)
    machine.disk.powerCut()
    machine.disk.restart(keeping: .loseAll)
    try await store.resume()
    for (task, count) in counts {
      #expect(try store.count(EntryQuery(prefix: Key("t\(task)/"))) == count)
    }
    try await store.close()
  }

  @Test("readers and writers beside suspending and resuming are answered rightly or refused")
  func busy() async throws {
    let store = try machine.open(usesThreads: true)
    for i in 0..<200 { try await store.put("key\(i)", "\(i)") }
    try await withThrowingTaskGroup { group in
      for _ in 0..<3 {
        group.addTask {
          for i in 0..<2_000 {
            let failure = code {
              let value = try store.value(forKey: "key\(i % 200)")
              #expect(value?.text == "\(i % 200)")
              guard i % 50 == 0 else { return }
              let count = try store.found().count
              #expect(count >= 200)
            }
            #expect(failure == nil || failure == .suspended)
            await Task.yield()
          }
        }
      }
      group.addTask {
        for i in 0..<300 {
          let code = await code { try await store.put("more\(i)", "1") }
          #expect(code == nil || code == .suspended)
          if i % 60 == 0 {
            let code = await Self.compacting(store)
            #expect(code == nil || code == .suspended)
          }
        }
      }
      for _ in 0..<20 {
        try await store.suspend()
        #expect(machine.disk.openFiles == 0)
        try await store.resume()
        await Task.yield()
      }
      try await group.waitForAll()
    }
    try await store.close()
    let again = try machine.open()
    #expect(try again.count(EntryQuery(prefix: "key")) == 200)
    try await again.close()
  }

  private static func compacting(_ store: Store) async -> TidemarkError.Code? {
    await code { try await store.compact() }
  }

  @Test("a store in memory is suspended, too")
  func memory() async throws {
    let store = try await Store.open(at: .inMemory)
    try await store.put("a", "1")
    try await store.suspend()
    #expect(code { _ = try store.value(forKey: "a") } == .suspended)
    try await store.resume()
    #expect(try store.value(forKey: "a")?.text == "1")
    try await store.close()
  }
}
