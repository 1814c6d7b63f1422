import Logging
import Synchronization
import Testing
import Tidemark
import TidemarkSync

@testable import SyncServerKit

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

@Suite("The open databases")
struct DatabaseTableTests {
  @Test("an append to a database is told by its name, closing it is not")
  func changes() async throws {
    try await TestServer.inDirectory { directory in
      let told = Mutex<[String]>([])
      let table = DatabaseTable(
        try DataDirectory(directory), creates: true, limits: ServerLimits(), options: .init(),
        retention: nil, policies: try PolicyRules([]), logger: Logger(label: "test")
      ) { name in told.withLock { $0.append(name.description) } }
      let name = try #require(DatabaseName("notes"))
      for _ in 0..<2 {
        let lease = try table.lease(name, mayCreate: true)
        told.withLock { $0 = [] }
        _ = try lease.handler.hello(HelloRequest(replica: .test(1)))
        try lease.handler.setPolicy(.detect, forKeysWithPrefix: "")
        #expect(Set(told.withLock { $0 }) == ["notes"])
      }
      // Many records: closing appends a list of them.
      let lease = try table.lease(name, mayCreate: true)
      for _ in 0..<100 { try lease.handler.setPolicy(.detect, forKeysWithPrefix: "") }
      told.withLock { $0 = [] }
      table.closeAll()
      #expect(told.withLock { $0 } == [])
    }
  }

  @Test("thousands of databases are listed, whatever lies behind the last entry that was read")
  func manyNames() async throws {
    try await TestServer.inDirectory { directory in
      let data = try DataDirectory(directory)
      let names = (0..<4_000).map { "n\($0)" + String(repeating: "x", count: $0 % 59) }
      for name in names { #expect(mkdir("\(directory)/\(name).tidemark", 0o700) == 0) }
      // Buffers come and go at other places, some with nothing behind them.
      for _ in 0..<50 { #expect(data.count() == names.count) }
      #expect(Set(data.names().map(\.description)) == Set(names))
    }
  }

  @Test("a look at a database is no use of it: it is closed as one that nobody uses")
  func look() async throws {
    try await TestServer.inDirectory { directory in
      var limits = ServerLimits()
      limits.databaseIdle = .milliseconds(300)
      let table = DatabaseTable(
        try DataDirectory(directory), creates: true, limits: limits, options: .init(),
        retention: nil, policies: try PolicyRules([]), logger: Logger(label: "test"))
      let name = try #require(DatabaseName("notes"))
      _ = try table.lease(name, mayCreate: true)
      try await Task.sleep(for: .milliseconds(400))
      _ = try table.lease(name, mayCreate: false, isUse: false)
      #expect(table.openNames == [name] && table.allNames() == [name])
      table.closeIdle()
      #expect(table.openNames == [] && table.allNames() == [name])
      table.closeAll()
    }
  }

  @Test("the caches of all databases that may be open stay within the server's bound")
  func caches() async throws {
    try await TestServer.inDirectory { directory in
      var limits = ServerLimits()
      limits.openDatabases = 3
      limits.cacheBytes = 1 << 20
      let table = DatabaseTable(
        try DataDirectory(directory), creates: true, limits: limits, options: .init(),
        retention: nil, policies: try PolicyRules([]), logger: Logger(label: "test"))
      var chance = SystemRandomNumberGenerator()
      var cached = 0
      for number in 0..<limits.openDatabases {
        let store = try Store.openBlocking(
          at: "\(directory)/\(number).tidemark", configuration: table.configuration(.create))
        for key in 0..<100 {
          let value = (0..<600).map { _ in String(chance.next(), radix: 36) }.joined()
          try store.blocking.put("\(key)", value)
        }
        try store.blocking.compact()
        let before = try store.status.memoryBytes
        for _ in 0..<3 { for key in 0..<100 { _ = try store.value(forKey: "\(key)") } }
        let status = try store.status
        #expect(status.memoryBytes > before, "nothing was read from the log")
        cached += status.cacheBytes + status.memoryBytes - before
        try store.blocking.close()
      }
      #expect(cached > limits.cacheBytes / 4 && cached <= limits.cacheBytes, "\(cached)")
    }
  }
}
