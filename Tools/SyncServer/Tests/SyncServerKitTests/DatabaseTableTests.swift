import Logging
import Testing
import TidemarkSync

@testable import SyncServerKit

@Suite("The open databases")
struct DatabaseTableTests {
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
}
