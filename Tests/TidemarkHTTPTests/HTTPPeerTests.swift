import Testing
import Tidemark
import TidemarkSyncProtocol
import TidemarkSyncTestKit

@testable import TidemarkHTTP
@testable import TidemarkSyncServer

@Suite("A server as the remote end")
struct HTTPPeerTests {
  @Test("all calls reach the server", arguments: Transports.all)
  func calls(transport: Transports) async throws {
    let memory = try MemoryPeer()
    let routes = SyncRoutes(memory.handler)
    let server = try SocketServer(routes.serve)
    let peer = try HTTPPeer("\(server.url)/notes", transport: transport.make())
    let replica = try #require(ReplicaID([UInt8](repeating: 1, count: 16)))
    let hello = try await peer.hello(HelloRequest(replica: replica))
    #expect(hello.feed == memory.handler.feedID)
    let change = PushedChange(
      sequence: 1, kind: .put, key: [1], content: SyncContent(value: [2]), commitTime: 1)
    let pushed = try await peer.push(
      PushRequest(replica: replica, number: 1, batchID: BatchID(1), changes: [change]))
    #expect(pushed.mark.number == 1)
    let page = try await peer.pull(PullRequest(replica: replica, after: .beginning))
    #expect(page.entries.map(\.kind) == [.own])
    let values = try await peer.values(ValuesRequest(replica: replica, keys: [[1]]))
    #expect(values.entries.map(\.content.value) == [[2]])
    #expect(try await peer.digest(DigestRequest(replica: replica)).parts[0].total.keys == 1)
    #expect(server.requests.map(\.path).allSatisfy { $0.hasPrefix("/notes/v1/") })
    await peer.close()
    server.stop()
  }
}
