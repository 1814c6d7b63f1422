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
    try await check.run(upon: peer, patience: .seconds(1_200))
    #expect(!server.requests.isEmpty)
  }

  /// Such as `TIDEMARK_SYNC_URL=http://127.0.0.1:8080`, in which databases can be made.
  private static let serverURL = ProcessInfo.processInfo.environment["TIDEMARK_SYNC_URL"]

  @Test(
    "a server that runs somewhere conforms", .enabled(if: serverURL != nil),
    arguments: PeerConformance.checks, Transports.all)
  func running(check: PeerConformance.Check, transport: Transports) async throws {
    let name = "conformance-\(UUID().uuidString.lowercased())"
    let url = try #require(Self.serverURL) + "/\(name)"
    try await check.run(
      upon: try HTTPPeer(url, transport: transport.make()), patience: .seconds(1_200))
  }
}
