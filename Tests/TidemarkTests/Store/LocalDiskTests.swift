import Testing
import Tidemark

@Suite("On the machine's own disk", .timeLimit(.minutes(20)))
struct LocalDiskTests {
  @Test("a store is written, locked, followed and read again")
  func whole() async throws {
    try await withDirectory { directory in
      let path = directory + "/test.tidemark"
      let store = try await Store.open(at: path)
      #expect(await code { _ = try await Store.open(at: path) } == .locked)
      try await withThrowingTaskGroup { group in
        for task in 0..<4 {
          group.addTask {
            for i in 0..<50 {
              try await store.put(
                "t\(task)/\(i)", "\(i)", durability: i.isMultiple(of: 10) ? .durable : nil)
            }
          }
        }
        try await group.waitForAll()
      }
      try await store.close()
      let again = try await Store.open(at: path, configuration: .init(access: .write))
      #expect(try again.count() == 200)
      #expect(again.durableSequence == 200)
      try await again.close()
    }
  }

  @Test("a store that is open for reading follows what another opening writes")
  func follow() async throws {
    try await withDirectory { directory in
      let path = directory + "/test.tidemark"
      let store = try await Store.open(at: path)
      try await store.put("a", "1", durability: .durable)
      let reader = try await Store.open(at: path, configuration: .init(access: .readOnly))
      let options = ChangeOptions(delivery: .committed)
      let follower = Task {
        var keys: [String] = []
        for try await change in reader.changes(since: .beginning, options: options) {
          keys.append(change.entry?.key.text ?? "")
          if keys.count == 2 { break }
        }
        return keys
      }
      for _ in 0..<20 { await Task.yield() }
      try await store.put("b", "1", durability: .durable)
      #expect(try await follower.value == ["a", "b"])
      try await reader.close()
      try await store.close()
    }
  }

  @Test("a path that is no store is told apart from a store that is missing")
  func strange() async throws {
    try await withDirectory { directory in
      let disk = LocalFileSystem()
      try disk.createDirectory(directory + "/folder")
      disk.touch(directory + "/folder/file")
      let write = Store.Configuration(access: .write)
      #expect(
        await code {
          _ = try await Store.open(at: directory + "/none", configuration: write)
        } == .storeMissing)
      for path in ["/folder", "/folder/file"] {
        #expect(await code { _ = try await Store.open(at: directory + path) } == .notAStore)
      }
    }
  }

  private func withDirectory(_ body: (String) async throws -> Void) async throws {
    let disk = LocalFileSystem()
    let path = "/tmp/tidemark-test-\(SystemRandom().next())"
    try disk.createDirectory(path)
    do { try await body(path) } catch {
      disk.removeAll(path)
      throw error
    }
    disk.removeAll(path)
  }
}

extension LocalFileSystem {
  fileprivate func touch(_ path: String) { try? open(path, .create).close() }

  fileprivate func removeAll(_ path: String) {
    if (try? kind(path)) == .directory {
      for name in (try? list(path)) ?? [] { removeAll(path + "/" + name) }
    }
    try? remove(path)
  }
}
