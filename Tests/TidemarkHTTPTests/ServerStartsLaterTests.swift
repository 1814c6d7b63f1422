import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkSync
import TidemarkSyncServer

@testable import TidemarkHTTP

@Suite("A server that is started later", .timeLimit(.minutes(20)))
struct ServerStartsLaterTests {
  /// A port at which nobody listens any more.
  private func freePort() throws -> UInt16 {
    let server = try SocketServer { _, _ in false }
    defer { server.stop() }
    return server.port
  }

  /// The server before may still be going.
  private func serve(_ handler: SyncHandler, at port: UInt16) async throws -> SocketServer {
    let routes = SyncRoutes(handler)
    while true {
      do { return try SocketServer(port: port, routes.serve) } catch is POSIXError {
        try await Task.sleep(for: .milliseconds(10))
      }
    }
  }

  private func memoryStore() throws -> Store {
    try Store.openBlocking(
      at: "store",
      configuration: Store.Configuration(
        environment: Store.Environment(fileSystem: MemoryFileSystem())))
  }

  private func wait(for replicator: Replicator, _ isWanted: (SyncStatus) -> Bool) async {
    for await status in replicator.statuses() where isWanted(status) { return }
  }

  @Test(
    "a change written while nobody listens is counted, and goes by itself once somebody does",
    arguments: Transports.all)
  func startsLater(transport: Transports) async throws {
    let port = try freePort()
    let store = try memoryStore()
    let peer = try HTTPPeer("http://127.0.0.1:\(port)/notes", transport: transport.make())
    let replicator = try store.replicator(
      named: "home", peer: peer,
      configuration: Replicator.Configuration(
        firstRetry: .milliseconds(4), longestRetry: .milliseconds(40)))
    replicator.start()
    for number in 0..<300 { try await store.put("key \(number % 100)", "\(number)") }
    await wait(for: replicator) { if case .waiting = $0.phase { true } else { false } }
    #expect(replicator.status.lastError?.kind == .unavailable)
    #expect(try await store.pending(for: "home").entries == 100)
    let handler = try SyncHandler(serving: try memoryStore())
    let server = try await serve(handler, at: port)
    defer { server.stop() }
    await wait(for: replicator) { $0.phase == .idle && $0.pending.isEmpty }
    #expect(try await store.pending(for: "home").isEmpty)
    let answer = try handler.values(
      ValuesRequest(
        replica: ReplicaID(text: "00112233445566778899aabbccddeeff"),
        keys: [Array("key 99".utf8)]))
    #expect(answer.entries.first?.content.value == Array("299".utf8))
    await replicator.stop()
    await peer.close()
    try handler.close()
    try await store.close()
  }
}
