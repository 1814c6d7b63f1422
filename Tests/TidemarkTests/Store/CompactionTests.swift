import Testing
import Tidemark
import TidemarkTestKit

@Suite("Reading beside a compaction", .timeLimit(.minutes(20)))
struct CompactionTests {
  @Test("reads, scans, views and followers are right while the log is rewritten again and again")
  func beside() async throws {
    let store = try await Store.open(at: .inMemory)
    var batch = WriteBatch()
    for i in 0..<500 { try batch.put("fixed/\(1000 + i)", "\(i)", labels: ["even", "odd"]) }
    try await store.write(batch)
    let view = try store.view()
    try await withThrowingTaskGroup { group in
      group.addTask {
        for i in 0..<400 { try await store.put("moving/\(i % 10)", "\(i)") }
      }
      group.addTask {
        for round in 0..<8 { try await store.compact(dropHistory: round.isMultiple(of: 2)) }
      }
      for _ in 0..<2 {
        group.addTask {
          for i in 0..<400 {
            #expect(try store.text(forKey: "fixed/\(1000 + i)") == "\(i)")
            #expect(try view.text(forKey: "fixed/\(1000 + i)") == "\(i)")
            #expect(try view.text(forKey: "moving/\(i % 10)") == nil)
            _ = try store.entry(forKey: "moving/\(i % 10)")
            _ = try store.history(ofKey: "moving/\(i % 10)")
            if i.isMultiple(of: 40) {
              #expect(try store.count(EntryQuery(prefix: "fixed/", labels: .all("odd"))) == 500)
              #expect(try view.state().count == 500)
            }
            await Task.yield()
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try store.text(forKey: "moving/9") == "399")
    try await store.close()
  }

  @Test("a follower beside compactions misses no key's last change")
  func follower() async throws {
    let store = try await Store.open(at: .inMemory)
    let changes = store.changes(
      since: .beginning, options: ChangeOptions(delivery: .committed))
    let follower = Task {
      var state: [String: String] = [:]
      for try await change in changes {
        switch change {
        case .reset: state = [:]
        case .entry(let entry, _):
          if entry.key == "end" { return state }
          state[entry.key.text] = entry.kind == .delete ? nil : entry.value.text
        }
      }
      return state
    }
    for i in 0..<600 {
      if i.isMultiple(of: 5) {
        try await store.delete("k\((i * 3) % 17)")
      } else {
        try await store.put("k\(i % 17)", "\(i)")
      }
      if i.isMultiple(of: 50) { try await store.compact(dropHistory: true) }
    }
    var expected = try store.state()
    try await store.put("end", "1")
    expected["end"] = nil
    #expect(try await follower.value == expected)
    try await store.close()
  }
}
