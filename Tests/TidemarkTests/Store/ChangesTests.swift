import Testing
import Tidemark
import TidemarkTestKit

@Suite("Following changes", .timeLimit(.minutes(20)))
struct ChangesTests {
  let machine = Machine()
  let store: Store

  init() throws { store = try machine.open(durability: .durable) }

  /// The next changes as text.
  private func take(_ count: Int, _ changes: EntryChanges) async throws -> [String] {
    var lines: [String] = []
    for try await change in changes {
      switch change {
      case .entry(let entry, _): lines.append("\(entry.sequence) \(entry.kind) \(entry.key)")
      case .reset: lines.append("reset")
      }
      if lines.count == count { break }
    }
    return lines
  }

  @Test("from the beginning everything comes in order")
  func everything() async throws {
    try await store.put("a", "1")
    try await store.put("b", "1")
    try await store.delete("a")
    #expect(
      try await take(3, store.changes(since: .beginning)) == ["1 put a", "2 put b", "3 delete a"])
  }

  @Test("without a cursor only what comes later is told")
  func fromNow() async throws {
    try await store.put("a", "1")
    let changes = store.changes()
    try await store.put("b", "1")
    #expect(try await take(1, changes) == ["2 put b"])
  }

  @Test("without a cursor, what was committed before is not told, also if it is not durable yet")
  func fromNowUndurable() async throws {
    try await store.put("a", "1", durability: .buffered)
    #expect(store.durableSequence == 0)
    let changes = store.changes()
    try await store.put("b", "1", durability: .buffered)
    try await store.flush()
    #expect(try await take(1, changes) == ["2 put b"])
  }

  @Test("a follower is woken by what is committed while it waits")
  func woken() async throws {
    let changes = store.changes()
    let follower = Task { try await take(3, changes) }
    for key in ["a", "b", "c"] {
      await Task.yield()
      try await store.put(key, "1")
    }
    #expect(try await follower.value == ["1 put a", "2 put b", "3 put c"])
  }

  @Test("a stored cursor goes on where it stopped, also in another opening")
  func resume() async throws {
    for i in 0..<5 { try await store.put("k\(i)", "1") }
    var cursor: EntryCursor?
    for try await change in store.changes(since: .beginning) {
      cursor = change.cursor
      if change.entry?.key == "k2" { break }
    }
    let text = try #require(cursor).description
    try await store.close()
    let again = try machine.open(durability: .durable)
    try await again.put("k5", "1")
    let resumed = EntryCursor(text)
    #expect(resumed == cursor)
    let changes = again.changes(since: resumed)
    #expect(try await take(3, changes) == ["4 put k3", "5 put k4", "6 put k5"])
    try await again.close()
  }

  @Test("a prefix leaves the rest out")
  func prefix() async throws {
    try await store.put("note/1", "1")
    try await store.put("task/1", "1")
    try await store.put("note/2", "1")
    #expect(
      try await take(2, store.changes(since: .beginning, prefix: "note/"))
        == ["1 put note/1", "3 put note/2"])
  }

  @Test("an entry that is not on the disk yet is told only to a follower that asks for it")
  func durable() async throws {
    try await store.put("a", "1", durability: .buffered)
    let early = store.changes(
      since: .beginning, options: ChangeOptions(delivery: .committed))
    #expect(try await take(1, early) == ["1 put a"])
    let follower = Task { try await take(1, store.changes(since: .beginning)) }
    for _ in 0..<20 { await Task.yield() }
    #expect(store.durableSequence == 0)
    try await store.flush()
    #expect(try await follower.value == ["1 put a"])
  }

  @Test("a follower of what is committed hears of the program's own write before it is durable")
  func committed() async throws {
    let own = store.changes(delivery: .committed)
    let safe = store.changes()
    try await store.put("a", "1", durability: .async)
    #expect(try await take(1, own) == ["1 put a"])
    #expect(store.durableSequence == 0)
    try await store.flush()
    #expect(try await take(1, safe) == ["1 put a"])
  }

  @Test("closing ends the sequence")
  func close() async throws {
    let follower = Task { try await take(9, store.changes()) }
    for _ in 0..<20 { await Task.yield() }
    try await store.close()
    #expect(try await follower.value == [])
    #expect(try await take(1, store.changes()) == [])
  }

  @Test("cancelling ends the sequence")
  func cancel() async throws {
    let follower = Task { try await take(9, store.changes()) }
    for _ in 0..<20 { await Task.yield() }
    follower.cancel()
    #expect(try await follower.value == [])
  }

  @Test("a cursor of an unknown epoch or beyond its end is refused")
  func diverged() async throws {
    let receipt = try await store.put("a", "1")
    for cursor in [
      EntryCursor(epoch: receipt.epoch &+ 1, sequence: 1),
      EntryCursor(epoch: receipt.epoch, sequence: 2),
    ] {
      #expect(
        await code { _ = try await take(1, store.changes(since: cursor)) } == .historyDiverged)
    }
  }

  @Test("a cursor of entries that a power cut took back is refused")
  func takenBack() async throws {
    try await store.put("a", "1")
    let lost = try await store.put("b", "1", durability: .buffered)
    machine.disk.powerCut()
    try? store.blocking.close()
    machine.disk.restart(keeping: .loseAll)
    let again = try machine.open(durability: .durable)
    try await again.put("c", "1")
    try await again.put("d", "1")
    #expect(again.lastSequence == 3)
    #expect(
      await code { _ = try await take(1, again.changes(since: lost.cursor)) } == .historyDiverged)
    try await again.close()
  }

  @Test("when deletes behind the cursor are gone, a reset comes first and then all there is")
  func reset() async throws {
    try await store.put("a", "1")
    let cursor = try await store.put("b", "1").cursor
    try await store.put("c", "1")
    try await store.delete("a")
    try await store.put("b", "2")
    try await store.compact(dropHistory: true)
    #expect(
      try await take(3, store.changes(since: cursor)) == ["reset", "3 put c", "5 put b"])
    let now = try store.cursor
    try await store.put("d", "1")
    #expect(try await take(1, store.changes(since: now)) == ["6 put d"])
  }

  @Test("when only older versions are gone, each key's last change comes and no reset")
  func lastChanges() async throws {
    let cursor = try await store.put("a", "1").cursor
    try await store.put("b", "1")
    try await store.put("b", "2")
    try await store.put("a", "2")
    try await store.compact(dropHistory: true)
    #expect(try await take(2, store.changes(since: cursor)) == ["3 put b", "4 put a"])
  }

  @Test("many followers of many writers each get everything in order")
  func manyFollowers() async throws {
    let store = try await Store.open(at: .inMemory)
    let (writers, each) = (4, 100)
    let changes = store.changes(
      since: .beginning, options: ChangeOptions(delivery: .committed, values: false))
    try await withThrowingTaskGroup { group in
      for _ in 0..<3 {
        group.addTask {
          var last: UInt64 = 0
          for try await change in changes {
            #expect(change.cursor.sequence == last + 1)
            last = change.cursor.sequence
            if last == UInt64(writers * each) { break }
          }
        }
      }
      for writer in 0..<writers {
        group.addTask {
          for i in 0..<each { try await store.put("w\(writer)/\(i)", "1") }
        }
      }
      try await group.waitForAll()
    }
    try await store.close()
  }

  @Test("cursors survive text, and text that is no cursor is none")
  func cursorText() {
    for cursor in [EntryCursor.beginning, EntryCursor(epoch: .max, sequence: .max)] {
      #expect(EntryCursor(cursor.description) == cursor)
    }
    for text in ["", "1-2", "0000000000000001-", "000000000000000g-1", "0000000000000001-+1"] {
      #expect(EntryCursor(text) == nil)
    }
  }
}
