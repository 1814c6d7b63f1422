import Testing
import Tidemark
import TidemarkTestKit

@Suite("Commits, and undoing them")
struct CommitTests {
  let machine = Machine()

  private func transfer(_ store: Store) throws -> WriteReceipt {
    try store.blocking.write { batch in
      try batch.put("account/1", "100")
      try batch.put("account/2", "100")
    }
    return try store.blocking.write { batch in
      try batch.put("account/1", "90")
      try batch.put("account/2", "110")
    }
  }

  @Test("a part of a commit is not undone, and the error names the whole")
  func part() async throws {
    let store = try machine.open()
    let receipt = try transfer(store)
    for range in [4..<5, 3..<4, 2..<5, 2..<4] as [Range<UInt64>] {
      let error = await #expect(throws: TidemarkError.self) { try await store.undo(range) }
      #expect(error?.code == .invalidArgument)
      #expect(error?.sequences == (range.lowerBound == 2 ? 1...2 : 3...4))
    }
    let since = #expect(throws: TidemarkError.self) { try store.blocking.undo(since: 3) }
    #expect(since?.sequences == 3...4)
    #expect(try store.state() == ["account/1": "90", "account/2": "110"])
    try await store.undo(receipt.sequences)
    #expect(try store.state() == ["account/1": "100", "account/2": "100"])
    try await store.undo(1..<7)
    #expect(try store.state().isEmpty)
  }

  @Test("a commit is found again after reopening, and can be undone")
  func reopened() async throws {
    let receipt = try transfer(machine.open())
    let killed = try machine.open(.readOnly)
    #expect(try killed.commits().first?.sequences == receipt.sequences)
    machine.disk.kill()
    machine.disk.restart()
    let store = try machine.open()
    try await store.put("other", "1")
    let found = try #require(try store.commit(holding: store.lastSequence - 1))
    #expect(found.sequences == receipt.sequences && found.count == 2 && found.isWhole)
    #expect(found.commitTime == receipt.commitTime)
    var keys: [String] = []
    var rows = try store.entries(of: found)
    while let entry = try rows.next() { keys.append("\(entry.key.text)=\(entry.value.text)") }
    #expect(keys == ["account/1=90", "account/2=110"])
    try await store.undo(found.sequences)
    #expect(try store.text(forKey: "account/1") == "100")
  }

  @Test("an undo of what is not reached yet names the sequence that was asked for")
  func future() async throws {
    let store = try machine.open()
    try await store.put("a", "1")
    let error = await #expect(throws: TidemarkError.self) { try await store.undo(500..<501) }
    #expect(error?.code == .invalidArgument)
    #expect(error?.message.contains("sequence 500 is not reached yet; the newest is 1") == true)
  }

  @Test("commits come newest first, page by page, also where one is longer than a look at the log")
  func pages() async throws {
    let store = try machine.open()
    let sizes = [1, 3, 2500, 1, 1, 700, 2]
    var expected: [Range<UInt64>] = []
    for (i, size) in sizes.enumerated() {
      let receipt = try await store.write { batch in
        for j in 0..<size { try batch.put("\(i)/\(j)", "") }
      }
      expected.insert(receipt.sequences, at: 0)
    }
    for limit in [1, 2, 3, 100] {
      var found: [CommitInfo] = []
      while true {
        let page = try store.commits(before: found.last?.sequences.lowerBound, limit: limit)
        if page.isEmpty { break }
        found += page
      }
      #expect(found.map(\.sequences) == expected, "limit \(limit)")
      #expect(found.map(\.count) == sizes.reversed())
    }
    #expect(try store.commits(limit: 0).isEmpty)
  }

  @Test("a view shows the commits that had ended by then, and none in part")
  func view() async throws {
    let store = try machine.open()
    try await store.put("a", "1")
    _ = try transfer(store)
    #expect(try store.view(at: 4).commits().map(\.sequences) == [2..<4, 1..<2])
    #expect(try store.view(at: 3).commits().map(\.sequences) == [2..<4, 1..<2])
    #expect(try store.view(at: 0).commits().isEmpty)
    #expect(try store.view(at: 1).commit(holding: 2) == nil)
  }

  @Test("a commit of compacted history tells that it may have lost entries")
  func compacted() async throws {
    let store = try machine.open()
    _ = try transfer(store)
    try await store.put("account/2", "120")
    try await store.compact(dropHistory: true)
    let receipt = try await store.write { batch in
      try batch.put("account/1", "80")
      try batch.put("account/2", "130")
    }
    let commits = try store.commits()
    #expect(commits.map(\.sequences) == [receipt.sequences, 5..<6, 3..<4])
    #expect(commits.map(\.count) == [2, 1, 1])
    #expect(commits.map(\.isWhole) == [true, false, false])
    #expect(try store.commit(holding: 4) == nil)
    #expect(await code { try await store.undo(3..<4) } == .historyGone)
    try await store.undo(receipt.sequences)
    #expect(try store.state() == ["account/1": "90", "account/2": "120"])
  }
}
