import Testing
import Tidemark
import TidemarkHTTP
import TidemarkSyncServer
import TidemarkSyncTestKit

/// The client's side against the server, over real sockets.
@Suite("The conformance suite against the server")
struct ConformanceTests {
  @Test("the server conforms by way of HTTPPeer", arguments: PeerConformance.checks)
  func conforms(check: PeerConformance.Check) async throws {
    try await TestServer.run { server in
      try await check.run(upon: try HTTPPeer("http://127.0.0.1:\(server.port)/notes"))
    }
  }

  @Test("databases of one server are apart")
  func databases() async throws {
    try await TestServer.run { server in
      let one = try HTTPPeer("http://127.0.0.1:\(server.port)/one")
      let two = try HTTPPeer("http://127.0.0.1:\(server.port)/two/")
      let replica = try #require(ReplicaID([UInt8](repeating: 1, count: 16)))
      let feeds = [
        try await one.hello(HelloRequest(replica: replica)).feed,
        try await two.hello(HelloRequest(replica: replica)).feed,
      ]
      #expect(feeds[0] != feeds[1])
      let change = PushedChange(
        sequence: 1, kind: .put, key: [1], content: SyncContent(value: [2]), commitTime: 1)
      _ = try await one.push(
        PushRequest(replica: replica, number: 1, batchID: BatchID(1), changes: [change]))
      #expect(try await two.pull(PullRequest(replica: replica, after: .beginning)).entries == [])
      await one.close()
      await two.close()
    }
  }
}
