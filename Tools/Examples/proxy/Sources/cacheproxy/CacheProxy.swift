import ArgumentParser
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix
import Tidemark
import TidemarkHTTP
import TidemarkHTTPCache

/// A caching proxy before one server, on the loopback interface.
@main
struct CacheProxy: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cacheproxy", abstract: "Answers for a server with what it has said before.")

  @Option(help: "The address of the server, such as http://127.0.0.1:8000.")
  var origin: String

  @Option(help: "The port to listen on.")
  var port: Int

  @Option(help: "The store; without it, what is kept goes with the proxy.")
  var data: String?

  func run() async throws {
    let store: Store
    if let data {
      store = try await Store.open(at: data)
    } else {
      store = try await Store.open(at: .inMemory)
    }
    let cache = try HTTPCache(store: store)
    let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .bind(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          return try NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>(
            wrappingChannelSynchronously: channel)
        }
      }
    let origin = origin.hasSuffix("/") ? String(origin.dropLast()) : origin
    print("http://127.0.0.1:\(server.channel.localAddress?.port ?? port) answers for \(origin)")
    try await server.executeThenClose { connections in
      try await withThrowingDiscardingTaskGroup { group in
        for try await connection in connections {
          let exchange = ProxyExchange(origin: origin, cache: cache, channel: connection.channel)
          // A connection that breaks is no concern of the others'.
          group.addTask { try? await exchange.serve(connection) }
        }
      }
    }
  }
}

/// The requests of one connection.
struct ProxyExchange: Sendable {
  let origin: String
  let cache: HTTPCache
  let channel: any Channel

  /// Most bytes of a request's body.
  private static let mostBytes = 64 << 20
  /// Fields that concern one connection, or that the transport sets.
  private static let ofTheConnection: Set<String> = [
    "connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
  ]

  func serve(
    _ connection: NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>
  ) async throws {
    try await connection.executeThenClose { parts, _ in
      var head: HTTPRequestHead?
      var body: [UInt8] = []
      for try await part in parts {
        switch part {
        case .head(let next): (head, body) = (next, [])
        case .body(let buffer):
          guard body.count + buffer.readableBytes <= Self.mostBytes else { return }
          body.append(contentsOf: buffer.readableBytesView)
        case .end:
          guard let head, try await answer(head, body), head.isKeepAlive else { return }
        }
      }
    }
  }

  /// - Returns: whether the connection can go on.
  private func answer(_ head: HTTPRequestHead, _ body: [UInt8]) async throws -> Bool {
    var request = HTTPTransportRequest(
      method: head.method.rawValue, url: origin + head.uri, body: body)
    for (name, value) in head.headers {
      let name = name.lowercased()
      guard !Self.ofTheConnection.contains(name) else { continue }
      request.headers[name] = request.headers[name].map { "\($0), \(value)" } ?? value
    }
    // Whether the head of the answer has gone out.
    let sent = NIOLockedValueBox(false)
    do {
      // A reader that is slow is waited for: nothing piles up.
      try await cache.stream(request) { answer in
        try send(.head(Self.head(answer)))
        sent.withLockedValue { $0 = true }
      } body: { bytes in
        try send(.body(.byteBuffer(ByteBuffer(bytes: bytes))))
      }
      try await channel.writeAndFlush(HTTPServerResponsePart.end(nil))
      return true
    } catch {
      // An answer that has begun can only break off.
      guard !sent.withLockedValue({ $0 }) else { return false }
      let text = "The server cannot be reached: \(error)\n"
      try await channel.writeAndFlush(
        HTTPServerResponsePart.head(
          HTTPResponseHead(
            version: .http1_1, status: .badGateway,
            headers: ["content-length": "\(text.utf8.count)"])))
      try await channel.writeAndFlush(
        HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: text))))
      try await channel.writeAndFlush(HTTPServerResponsePart.end(nil))
      return true
    }
  }

  private func send(_ part: HTTPServerResponsePart) throws {
    try channel.writeAndFlush(part).wait()
  }

  private static func head(_ answer: HTTPTransportAnswer) -> HTTPResponseHead {
    var headers = HTTPHeaders()
    for (name, value) in answer.headers.sorted(by: { $0.key < $1.key })
    where !ofTheConnection.contains(name) || name == "content-length" {
      headers.add(name: name, value: value)
    }
    return HTTPResponseHead(
      version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status), headers: headers)
  }
}
