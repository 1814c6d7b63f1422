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

  /// Most connections; others wait until one of them ends.
  private static let mostConnections = 64
  /// Most bytes of a request's head.
  private static let headBytes = 32 << 10
  /// How long nothing may move on a connection.
  private static let idleTime = TimeAmount.seconds(60)

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
        channel.eventLoop.makeCompletedFuture { try Self.configure(channel) }
      }
    let origin = origin.hasSuffix("/") ? String(origin.dropLast()) : origin
    print("http://127.0.0.1:\(server.channel.localAddress?.port ?? port) answers for \(origin)")
    try await server.executeThenClose { connections in
      try await withThrowingTaskGroup(of: Void.self) { group in
        var begun = 0
        for try await connection in connections {
          if begun == Self.mostConnections { try await group.next() } else { begun += 1 }
          let exchange = ProxyExchange(origin: origin, cache: cache, channel: connection.channel)
          // A connection that breaks is no concern of the others'.
          group.addTask { try? await exchange.serve(connection) }
        }
      }
    }
  }

  private static func configure(
    _ channel: any Channel
  ) throws -> NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart> {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = headBytes
    limits.maxHeaderListSize = headBytes
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(IdleStateHandler(allTimeout: idleTime))
    try pipeline.configureHTTPServerPipeline(
      withErrorHandling: false, withEncoderConfiguration: HTTPResponseEncoder.Configuration(),
      withDecoderLimitConfiguration: limits)
    try pipeline.addHandler(IdleCloser())
    return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
  }
}

/// Ends a connection on which nothing moves.
final class IdleCloser: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is IdleStateHandler.IdleStateEvent else {
      return context.fireUserInboundEventTriggered(event)
    }
    context.close(promise: nil)
  }
}
