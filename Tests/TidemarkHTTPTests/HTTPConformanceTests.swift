import Foundation
import Testing
import Tidemark
import TidemarkSync
import TidemarkSyncTestKit

@testable import TidemarkHTTP

@Suite("The conformance suite")
struct HTTPConformanceTests {
  @Test("a server over sockets conforms", arguments: PeerConformance.checks, Transports.all)
  func http(check: PeerConformance.Check, transport: Transports) async throws {
    let memory = try MemoryPeer()
    let routes = SyncRoutes(memory.handler)
    let server = try SocketServer(routes.serve)
    defer { server.stop() }
    let peer = try HTTPPeer("\(server.url)/notes", transport: transport.make())
    try await check.run(upon: peer)
    #expect(!server.requests.isEmpty)
  }
}
