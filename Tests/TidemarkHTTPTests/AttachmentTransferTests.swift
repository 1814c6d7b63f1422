import Testing
import Tidemark
import TidemarkEngine
import TidemarkSyncProtocol
import TidemarkSyncTestKit
import TidemarkTestKit

@testable import TidemarkHTTP
@testable import TidemarkSync
@testable import TidemarkSyncServer

@Suite("Attachments over HTTP", .timeLimit(.minutes(20)))
struct AttachmentTransferTests {
  private let film: [UInt8] = {
    var random = SeededGenerator(seed: 12)
    return random.bytes(3_000_000)
  }()

  private func store() throws -> Store {
    try Store.openBlocking(
      at: "store",
      configuration: Store.Configuration(
        environment: Store.Environment(fileSystem: MemoryFileSystem())))
  }

  @Test("a film goes to the server and comes back, in parts", arguments: Transports.all)
  func bothWays(transport: Transports) async throws {
    let memory = try MemoryPeer()
    let server = try SocketServer(SyncRoutes(memory.handler).serve)
    defer { server.stop() }
    let peer = try HTTPPeer("\(server.url)/notes", transport: transport.make())
    let (a, b) = (try store(), try store())
    let staged = try await a.attach(film)
    try await a.put("film", "1", options: PutOptions(attachment: staged))
    let report = try await a.replicator(named: "home", peer: peer).syncOnce()
    #expect(report.applied == 1 && report.attachmentBytesSent == film.count)
    let reader = try b.replicator(named: "home", peer: peer)
    _ = try await reader.syncOnce()
    let fetched = try await reader.fetchAttachment(forKey: "film")
    #expect(try fetched?.read(0..<film.count) == film)
    await peer.close()
  }

  @Test(
    "a connection that breaks now and then brings a film over, and little of it twice",
    arguments: Transports.all.filter(\.isBounded))
  func cuts(transport: Transports) async throws {
    let memory = try MemoryPeer()
    let routes = SyncRoutes(memory.handler)
    let calls = Lock(0)
    let (sent, fetched) = (Lock(0), Lock(0))
    let coder = WireCoder(limit: WireFrame.largestLimit)
    // Every third request that moves a part gets no answer; of these every second one is done.
    let server = try SocketServer { request, connection in
      switch try? coder.decode(request.body) {
      case .attachRequest(let part)? where !part.bytes.isEmpty:
        sent.withLock { $0 += part.bytes.count }
      case .fetchRequest(let question)?: fetched.withLock { $0 += question.limit }
      default: return routes.serve(request, connection)
      }
      let call = calls.withLock { calls in
        calls += 1
        return calls
      }
      switch call % 6 {
      case 2: return false
      case 5:
        if let message = try? coder.decode(request.body) { _ = try? memory.handler.answer(message) }
        return false
      default: return routes.serve(request, connection)
      }
    }
    defer { server.stop() }
    let peer = try HTTPPeer("\(server.url)/notes", transport: transport.make())
    let (a, b) = (try store(), try store())
    let staged = try await a.attach(film)
    try await a.put("film", "1", options: PutOptions(attachment: staged))
    let writer = try a.replicator(named: "home", peer: peer)
    try await insist { _ = try await writer.syncOnce() }
    let reader = try b.replicator(named: "home", peer: peer)
    try await insist { _ = try await reader.syncOnce() }
    try await insist { _ = try await reader.fetchAttachment(forKey: "film") }
    let content = try b.attachment(forKey: "film")
    #expect(try content?.read(0..<film.count) == film)
    // A part that was lost on the way goes again, and no more: no try begins at the beginning.
    #expect(sent.withLock { $0 } < 3 * film.count)
    #expect(fetched.withLock { $0 } < 4 * film.count)
    await peer.close()
  }

  /// Tries until it works.
  private func insist(_ body: () async throws -> Void) async throws {
    for _ in 0..<60 {
      do { return try await body() } catch let error as TidemarkError {
        guard error.peerError?.kind == .unavailable else { throw error }
      }
    }
    try await body()
  }

  @Test("content that was altered on the way is fetched again, and never becomes the attachment")
  func altered() async throws {
    let memory = try MemoryPeer()
    let routes = SyncRoutes(memory.handler)
    let coder = WireCoder(limit: WireFrame.largestLimit)
    let isHonest = Lock(false)
    let server = try SocketServer { request, connection in
      guard !isHonest.withLock({ $0 }),
        case .fetchRequest(let question)? = try? coder.decode(request.body),
        var part = try? memory.handler.fetch(question)
      else { return routes.serve(request, connection) }
      part.bytes?[0] ^= 1
      guard let body = try? coder.encode(.fetchAnswer(part)) else { return false }
      return connection.answer(200, body, type: WireFrame.contentType)
    }
    defer { server.stop() }
    let peer = try HTTPPeer("\(server.url)/notes")
    let (a, b) = (try store(), try store())
    let staged = try await a.attach(film)
    try await a.put("film", "1", options: PutOptions(attachment: staged))
    _ = try await a.replicator(named: "home", peer: peer).syncOnce()
    let reader = try b.replicator(named: "home", peer: peer)
    _ = try await reader.syncOnce()
    await #expect(throws: TidemarkError.self) {
      try await reader.fetchAttachment(forKey: "film")
    }
    #expect(try b.attachment(forKey: "film") == nil)
    isHonest.withLock { $0 = true }
    #expect(try await reader.fetchAttachment(forKey: "film") != nil)
    await peer.close()
  }
}
