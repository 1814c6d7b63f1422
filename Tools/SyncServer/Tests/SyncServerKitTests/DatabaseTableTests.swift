import Logging
import Synchronization
import Testing
import Tidemark
import TidemarkSyncServer

@testable import SyncServerKit

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

@Suite("The open databases")
struct DatabaseTableTests {
  @Test("entries that come to a database are told by its name, records and closing are not")
  func changes() async throws {
    try await TestServer.inDirectory { directory in
      let told = Mutex<[String]>([])
      let table = DatabaseTable(
        try DirectoryHome(directory), creates: true, limits: ServerLimits(), options: .init(),
        policies: try PolicyRules([]), logger: Logger(label: "test"))
      table.onChange { name in told.withLock { $0.append(name.description) } }
      let name = try #require(DatabaseName("notes"))
      for number in 1...2 as ClosedRange<UInt64> {
        let lease = try table.lease(name, mayCreate: true)
        _ = try lease.handler.hello(HelloRequest(replica: .test(1)))
        try lease.handler.setPolicy(.detect, forKeysWithPrefix: "")
        #expect(told.withLock { $0 } == [])
        _ = try lease.handler.push(.puts(["key \(number)"], by: .test(1), number: number))
        #expect(told.withLock { $0 } == ["notes"])
        told.withLock { $0 = [] }
      }
      // Many records: closing appends a list of them.
      let lease = try table.lease(name, mayCreate: true)
      for _ in 0..<100 { try lease.handler.setPolicy(.detect, forKeysWithPrefix: "") }
      table.closeAll()
      #expect(told.withLock { $0 } == [])
    }
  }

  @Test("the ten thousandth notice of a change lies no deeper on the stack than the first")
  func manyChanges() async throws {
    try await TestServer.inDirectory { directory in
      let table = DatabaseTable(
        try DirectoryHome(directory), creates: true, limits: ServerLimits(), options: .init(),
        policies: try PolicyRules([]), logger: Logger(label: "test"))
      let places = Mutex<[Int]>([])
      table.onChange { _ in
        var here: UInt8 = 0
        let place = withUnsafeMutablePointer(to: &here) { Int(bitPattern: $0) }
        places.withLock { $0.append(place) }
      }
      let name = try #require(DatabaseName("notes"))
      for _ in 0..<10_000 { table.noteChange(of: name) }
      let seen = places.withLock { $0 }
      #expect(seen.count == 10_000)
      #expect(abs(try #require(seen.last) - seen[0]) < 4_096)
    }
  }

  @Test("thousands of databases are listed, whatever lies behind the last entry that was read")
  func manyNames() async throws {
    try await TestServer.inDirectory { directory in
      let data = try DirectoryHome(directory)
      let names = (0..<4_000).map { "n\($0)" + String(repeating: "x", count: $0 % 59) }
      for name in names { #expect(mkdir("\(directory)/\(name).tidemark", 0o700) == 0) }
      // Buffers come and go at other places, some with nothing behind them.
      for _ in 0..<50 { #expect(data.names().count == names.count) }
      #expect(Set(data.names().map(\.description)) == Set(names))
    }
  }

  @Test("a look at a database is no use of it: it is closed as one that nobody uses")
  func look() async throws {
    try await TestServer.inDirectory { directory in
      var limits = ServerLimits()
      limits.databaseIdle = .milliseconds(300)
      let table = DatabaseTable(
        try DirectoryHome(directory), creates: true, limits: limits, options: .init(),
        policies: try PolicyRules([]), logger: Logger(label: "test"))
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
      let home = try DirectoryHome(directory, cacheBytes: limits.cacheBytes)
      let cache = try #require(home.configuration(.write).sharedCache)
      var chance = SystemRandomNumberGenerator()
      var stores: [Store] = []
      for number in 0..<limits.openDatabases {
        let store = try Store.openBlocking(
          at: "\(directory)/\(number).tidemark", configuration: home.configuration(.create))
        for key in 0..<100 {
          let value = (0..<600).map { _ in String(chance.next(), radix: 36) }.joined()
          try store.blocking.put("\(key)", value)
        }
        try store.blocking.compact()
        let before = cache.bytes
        for _ in 0..<3 { for key in 0..<100 { _ = try store.value(forKey: "\(key)") } }
        #expect(number > 0 || cache.bytes > before, "nothing was read from the log")
        #expect(try store.status.cacheBytes == 0)
        stores.append(store)
      }
      let cached = cache.bytes
      #expect(cached > limits.cacheBytes / 2 && cached <= limits.cacheBytes, "\(cached)")
      for store in stores { try store.blocking.close() }
    }
  }
}
