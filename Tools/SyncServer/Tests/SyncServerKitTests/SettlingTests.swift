import Testing
import TidemarkSync

@testable import SyncServerKit

@Suite("Answers of the server and the disk", .timeLimit(.minutes(20)))
struct SettlingTests {
  @Test("a push is answered once it is on the disk")
  func settled() async throws {
    try await TestServer.run { server in
      let writer = ReplicaID.test(1)
      let hello = WireMessage.helloRequest(HelloRequest(replica: writer))
      #expect(try await server.call(hello).status == 200)
      let name = try #require(DatabaseName("notes"))
      let lease = try server.server.service.databases.lease(name, mayCreate: false)
      for number in 1...5 as ClosedRange<UInt64> {
        let push = WireMessage.pushRequest(.puts(["key"], by: writer, number: number))
        #expect(try await server.call(push).status == 200)
        // An answer to its writer tells of the push, and could go out at once.
        let look = ValuesRequest(replica: writer, keys: [Array("key".utf8)])
        #expect(lease.handler.isSettled(try lease.handler.stage(.valuesRequest(look))))
      }
    }
  }
}
