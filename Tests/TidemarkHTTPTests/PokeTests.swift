import Foundation
import Testing
import TidemarkEngine
import TidemarkSync

@testable import TidemarkHTTP

@Suite("Pokes by server-sent events")
struct PokeTests {
  private func count(
    _ transport: Transports, options: HTTPPeer.Options = HTTPPeer.Options(),
    authorization: HTTPPeer.Authorization? = nil,
    _ serve: @escaping @Sendable (SocketServer.Request, Connection) -> Bool
  ) async throws -> (pokes: Int, requests: [SocketServer.Request]) {
    let server = try SocketServer(serve)
    defer { server.stop() }
    let peer = try HTTPPeer(
      "\(server.url)/notes", transport: transport.make(), options: options,
      authorization: authorization)
    let pokes = try #require(peer.pokes())
    var count = 0
    for await _ in pokes { count += 1 }
    await peer.close()
    return (count, server.requests)
  }

  @Test(
    "the connection pokes once, then every event; its end is the stream's",
    arguments: Transports.all)
  func events(transport: Transports) async throws {
    let result = try await count(transport) { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
      usleep(50_000)
      connection.send("event: po")
      usleep(20_000)
      connection.send("ke\ndata: {}\n\n: beat\n\n")
      usleep(50_000)
      return false
    }
    #expect(result.pokes == 2)
    #expect(result.requests.map(\.path) == ["/notes/v1/events"])
    #expect(result.requests.first?.headers["accept"] == "text/event-stream")
  }

  @Test("a server without events ends the stream at once", arguments: Transports.all)
  func none(transport: Transports) async throws {
    for (status, type) in [(404, "text/plain"), (200, "text/html"), (500, "text/event-stream")] {
      let result = try await count(transport) { _, connection in
        connection.answer(status, [], type: type)
      }
      #expect(result.pokes == 0, "\(status)")
    }
  }

  @Test("a silent connection counts as broken", arguments: Transports.all)
  func silence(transport: Transports) async throws {
    var pokes = 0
    // On a busy machine a short silence may be over before the answer has come.
    for silence in [0.1, 1, 10, 100] where pokes == 0 {
      pokes = try await count(
        transport, options: HTTPPeer.Options(silence: .seconds(silence))
      ) { _, connection in
        connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        return connection.readRequest() != nil
      }.pokes
    }
    #expect(pokes == 1)
  }

  @Test("lines without end are given up", arguments: Transports.all)
  func endless(transport: Transports) async throws {
    let sent = Lock(0)
    let result = try await count(transport) { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ")
      while connection.send([UInt8](repeating: 0x61, count: 65_536)),
        sent.withLock({ $0 }) < 1 << 30
      {
        sent.withLock { $0 += 65_536 }
      }
      return false
    }
    #expect(result.pokes == 1)
    if transport.isBounded { #expect(sent.withLock { $0 } < 1 << 24) }
  }

  @Test("a refused authorization is asked for again", arguments: Transports.all)
  func authorization(transport: Transports) async throws {
    let result = try await count(
      transport, authorization: { $0 ? "Bearer new" : "Bearer old" }
    ) { request, connection in
      guard request.headers["authorization"] == "Bearer new" else {
        return connection.answer(401, [], type: "text/plain")
      }
      connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
      return false
    }
    #expect(result.pokes == 1 && result.requests.count == 2)
  }

  @Test("a listener that stops ends the connection", arguments: Transports.all)
  func cancelled(transport: Transports) async throws {
    let ended = Lock(false)
    let server = try SocketServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
      while connection.send(":\n") { usleep(1000) }
      ended.withLock { $0 = true }
      return false
    }
    defer { server.stop() }
    let peer = try HTTPPeer("\(server.url)/notes", transport: transport.make())
    let task = Task { for await _ in try #require(peer.pokes()) {} }
    while server.requests.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
    task.cancel()
    while !ended.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
    await peer.close()
  }

  @Test("closing the peer ends the stream", arguments: Transports.all)
  func closing(transport: Transports) async throws {
    let server = try SocketServer { _, connection in
      connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
      while connection.send(":\n") { usleep(1000) }
      return false
    }
    defer { server.stop() }
    let peer = try HTTPPeer("\(server.url)/notes", transport: transport.make())
    var pokes = try #require(peer.pokes()).makeAsyncIterator()
    #expect(await pokes.next() != nil)
    await peer.close()
    while await pokes.next() != nil {}
  }
}
