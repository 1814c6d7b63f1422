import Testing
import Tidemark
import TidemarkTestKit

@Suite("Closing while others write", .timeLimit(.minutes(20)))
struct CloseTests {
  let machine = Machine()

  @Test(
    "an entry acknowledged before the close is there afterwards",
    arguments: [Durability.async, .buffered, .durable])
  func acknowledged(_ durability: Durability) async throws {
    let store = try machine.open(durability: durability, usesThreads: true)
    let counts = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
      for task in 0..<4 {
        group.addTask {
          for i in 0..<10_000 {
            let code = await code { try await store.put("t\(task)/\(i)", "1") }
            if let code {
              #expect(code == .closed)
              return (task, i)
            }
            // A write that need not wait does not give way to other tasks by itself.
            await Task.yield()
          }
          return (task, 10_000)
        }
      }
      while store.lastSequence < 50 { await Task.yield() }
      try await store.close()
      return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
    machine.disk.powerCut()
    machine.disk.restart(keeping: .loseAll)
    let again = try machine.open()
    for (task, count) in counts {
      #expect(try again.count(EntryQuery(prefix: Key("t\(task)/"))) == count)
    }
    try await again.close()
  }

  @Test("several who close at once all return when the store is closed")
  func together() async throws {
    let store = try machine.open(usesThreads: true)
    try await store.put("a", "1")
    try await withThrowingTaskGroup { group in
      for _ in 0..<4 { group.addTask { try await store.close() } }
      try await group.waitForAll()
    }
    let again = try machine.open()
    #expect(try again.state() == ["a": "1"])
    try await again.close()
  }

  @Test("rows and changes keep their store open")
  func kept() async throws {
    func rows() throws -> EntryRows {
      let store = try Machine().open()
      try store.blocking.put("a", "1")
      return try store.entries()
    }
    func changes() throws -> EntryChanges {
      let store = try Machine().open(durability: .durable)
      try store.blocking.put("a", "1")
      return store.changes(since: .beginning)
    }
    var kept = try rows()
    #expect(try kept.next()?.key == "a")
    for try await change in try changes() {
      #expect(change.entry?.key == "a")
      break
    }
  }
}
