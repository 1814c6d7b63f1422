import Testing
import Tidemark
import TidemarkTestKit

@Suite("Durability and waiting", .timeLimit(.minutes(20)))
struct DurabilityTests {
  let machine = Machine()

  @Test("durable writes from eight tasks are all on the disk when they return")
  func eightTasks() async throws {
    let store = try machine.open(durability: .durable, usesThreads: true)
    try await withThrowingTaskGroup { group in
      for task in 0..<8 {
        group.addTask {
          for i in 0..<25 {
            let receipt = try await store.put("t\(task)/\(i)", "\(i)")
            #expect(store.durableSequence >= receipt.sequence)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try store.count() == 200)
    machine.disk.powerCut()
    try? await store.close()
    machine.disk.restart(keeping: .loseAll)
    let again = try machine.open()
    #expect(try again.count() == 200)
    try await again.close()
  }

  @Test("tasks that wait at the same time share syncs")
  func groupCommit() async throws {
    let store = try machine.open(durability: .durable, usesThreads: true)
    try await store.put("first", "1")
    let before = machine.disk.calls(of: .sync)
    try await withThrowingTaskGroup { group in
      for task in 0..<8 {
        group.addTask { for i in 0..<25 { try await store.put("t\(task)/\(i)", "1") } }
      }
      try await group.waitForAll()
    }
    #expect(machine.disk.calls(of: .sync) - before <= 200)
    try await store.close()
  }

  @Test("a write at the store's durability survives what it promises")
  func perStore() async throws {
    for (durability, survives) in [(Durability.buffered, false), (.durable, true)] {
      let machine = Machine()
      let store = try machine.open(durability: durability)
      try await store.put("a", "1", durability: .durable)
      try await store.put("b", "1")
      machine.disk.powerCut()
      try? await store.close()
      machine.disk.restart(keeping: .loseAll)
      let again = try machine.open()
      #expect(try again.contains("a"))
      #expect(try again.contains("b") == survives)
      try await again.close()
    }
  }

  @Test("a buffered write survives the end of the process")
  func kill() async throws {
    let store = try machine.open()
    try await store.put("a", "1")
    machine.disk.kill()
    try? await store.close()
    machine.disk.restart()
    let again = try machine.open()
    #expect(try again.state() == ["a": "1"])
    try await again.close()
  }

  @Test("a cancelled task writes nothing")
  func cancelledBefore() async throws {
    let store = try await Store.open(at: .inMemory)
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      try await store.put("a", "1", durability: .durable)
    }
    task.cancel()
    let error = await #expect(throws: TidemarkError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    #expect(store.lastSequence == 0)
    try await store.close()
  }

  @Test("cancelling after the entry is staged does not change its outcome")
  func cancelledAfter() async throws {
    let disk = HeldDisk()
    var configuration = Store.Configuration(durability: .durable)
    configuration.environment.fileSystem = disk
    let store = try await Store.open(at: "store", configuration: configuration)
    try await store.put("first", "1")
    disk.hold()
    let task = Task { try await store.put("a", "1") }
    while store.lastSequence < 2 { await Task.yield() }
    task.cancel()
    for _ in 0..<20 { await Task.yield() }
    #expect(store.durableSequence == 1)
    disk.letGo()
    #expect(try await task.value.sequence == 2)
    #expect(store.durableSequence == 2)
    try await store.close()
  }

  @Test("waiting for the disk blocks no thread of the pool")
  func pool() async throws {
    let disk = HeldDisk()
    var configuration = Store.Configuration(durability: .durable)
    configuration.environment.fileSystem = disk
    let store = try await Store.open(at: "store", configuration: configuration)
    try await store.put("first", "1")
    disk.hold()
    // More than the pool has threads; were they blocked, the last lines would never run.
    let tasks = (0..<64).map { i in Task { try await store.put("k\(i)", "1") } }
    while store.lastSequence < 65 { await Task.yield() }
    disk.letGo()
    for task in tasks { _ = try await task.value }
    #expect(store.durableSequence == 65)
    try await store.close()
  }

  @Test("writers wait for the disk at 16 MiB that are not on it, and block no thread of the pool")
  func room() async throws {
    let disk = HeldDisk()
    var configuration = Store.Configuration()
    configuration.environment.fileSystem = disk
    let store = try await Store.open(at: "store", configuration: configuration)
    try await store.put("first", "1", durability: .durable)
    disk.hold()
    // Small enough for the log to take them as they are; compressed ones would need many more.
    var generator = SeededGenerator(seed: 7)
    var written = 1
    while store.engine.writer.goalForRoom() == nil {
      let value = (0..<(32 << 10)).map { _ in UInt8.random(in: 0...255, using: &generator) }
      try await store.put("large/\(written)", value)
      written += 1
    }
    let tasks = (0..<64).map { i in Task { try await store.put("k\(i)", "1") } }
    for _ in 0..<200 { await Task.yield() }
    #expect(store.lastSequence == UInt64(written))
    disk.letGo()
    for task in tasks { _ = try await task.value }
    #expect(try store.count() == written + 64)
    try await store.close()
  }

  @Test("a sync that fails leaves the outcome unknown, and nothing is written after it")
  func failedSync() async throws {
    let store = try machine.open(durability: .durable, usesThreads: true)
    try await store.put("a", "1")
    machine.disk.plan = .error(.EIO, atCall: 1, of: [.sync], sticky: true)
    #expect(await code { try await store.put("b", "1") } == .unknownOutcome)
    machine.disk.plan = .none
    #expect(await code { try await store.put("c", "1") } == .poisoned)
    #expect(try store.text(forKey: "a") == "1")
    #expect(try store.status.isPoisoned)
    try? await store.close()
    let again = try machine.open()
    #expect(try again.contains("a"))
    #expect(try !again.contains("c"))
    try await again.put("d", "1")
    try await again.close()
  }

  @Test("every one of those who wait hears of a sync that fails")
  func allHear() async throws {
    let store = try machine.open(durability: .durable, usesThreads: true)
    try await store.put("a", "1")
    machine.disk.plan = .error(.EIO, atCall: 1, of: [.sync], sticky: true)
    let outcomes = await withTaskGroup(of: (TidemarkError.Code?).self) { group in
      for i in 0..<16 {
        group.addTask { await code { try await store.put("k\(i)", "1") } }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    // Writers that staged before the failure do not know; the others were refused.
    for outcome in outcomes { #expect([.unknownOutcome, .poisoned].contains(outcome)) }
    #expect(outcomes.contains(.unknownOutcome))
    try? await store.close()
  }

  @Test("a full disk refuses a write, and writing goes on when there is space")
  func fullDisk() async throws {
    let store = try machine.open()
    try await store.put("a", "1")
    machine.disk.plan = .error(.ENOSPC, atCall: 1, of: [.allocate], sticky: true)
    let large = [UInt8](repeating: 1, count: 4 << 20)
    #expect(await code { try await store.put("b", large) } == .noSpace)
    #expect(try store.state() == ["a": "1"])
    machine.disk.plan = .none
    try await store.put("b", "1")
    #expect(try store.count() == 2)
    try await store.close()
  }

  @Test("in the background everything gets to the disk without being asked")
  func background() async throws {
    let store = try await Store.open(at: .inMemory)
    try await store.put("a", "1", durability: .async)
    while store.durableSequence < 1 { try await Task.sleep(for: .milliseconds(10)) }
    try await store.close()
  }

  @Test("closing while tasks wait tells each of them what became of its entry")
  func closeWhileWaiting() async throws {
    let store = try await Store.open(at: .inMemory, configuration: .init(durability: .durable))
    let outcomes = await withTaskGroup(of: (TidemarkError.Code?).self) { group in
      for task in 0..<8 {
        group.addTask {
          for i in 0..<1_000 {
            let code = await code { try await store.put("t\(task)/\(i)", "1") }
            if code != nil { return code }
          }
          return nil
        }
      }
      group.addTask {
        while store.lastSequence < 20 { await Task.yield() }
        return await code { try await store.close() }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    for outcome in outcomes { #expect([nil, .closed].contains(outcome)) }
  }
}
