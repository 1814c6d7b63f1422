import Testing
import Tidemark
import TidemarkEngine
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

  @Test("a call that is cancelled as its answer comes ends once", arguments: Transports.all)
  func cancelledAtTheEnd(transport: Transports) async throws {
    let line = transport.make()
    let call = Lock<Task<Void, any Error>?>(nil)
    let server = try server { call.withLock { $0 }?.cancel() }
    defer { server.stop() }
    for number in 0..<3000 {
      let task = Task { try await ask(server, number, line) }
      call.withLock { $0 = task }
      if case .failure(let error) = await task.result { #expect(error is CancellationError) }
    }
    await line.close()
  }

  @Test("a call that is cancelled as it begins tells so", arguments: Transports.all)
  func cancelledAtTheBeginning(transport: Transports) async throws {
    let line = transport.make()
    let server = try server {}
    defer { server.stop() }
    for number in 0..<1000 {
      let task = Task { try await ask(server, 0, line) }
      let end = ContinuousClock.now + .microseconds(number % 50)
      while ContinuousClock.now < end {}
      task.cancel()
      if case .failure(let error) = await task.result { #expect(error is CancellationError) }
    }
    await line.close()
  }

  @Test("calls of a transport that is closed as answers come end once", arguments: Transports.all)
  func closedAtTheEnd(transport: Transports) async throws {
    let line = Lock<(any HTTPTransport)?>(nil)
    let server = try server {
      let line = line.withLock { $0 }
      Task { await line?.close() }
    }
    defer { server.stop() }
    for number in 0..<300 {
      let fresh = transport.make()
      line.withLock { $0 = fresh }
      await withTaskGroup { group in
        for call in 0..<4 {
          group.addTask {
            do { try await ask(server, number + call, fresh) } catch {
              #expect((error as? PeerError)?.kind == .unavailable)
            }
          }
        }
      }
      await fresh.close()
    }
  }

  /// A server that does something about as long after its answers as these take to arrive.
  private func server(_ then: @escaping @Sendable () -> Void) throws -> SocketServer {
    try SocketServer { request, connection in
      let goesOn = connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      let end = ContinuousClock.now + .microseconds((Int(request.path.dropFirst()) ?? 0) % 100 * 8)
      while ContinuousClock.now < end {}
      then()
      return goesOn
    }
  }

  private func ask(
    _ server: SocketServer, _ number: Int, _ transport: any HTTPTransport
  ) async throws {
    let request = HTTPTransportRequest(url: "\(server.url)/\(number)")
    #expect(try await transport.answer(to: request, limit: 100).body == Array("ok".utf8))
  }
}
