#if AsyncHTTPClient
  internal import AsyncHTTPClient
  internal import NIOCore
  internal import NIOHTTP1
  internal import TidemarkSyncProtocol

  /// A transport over async-http-client: for servers and tools, where `URLSession` is slower. It is
  /// only built with the package's trait `AsyncHTTPClient`.
  public final class AsyncHTTPClientTransport: HTTPTransport {
    private let client: HTTPClient

    /// Creates a transport with its own client on the shared threads of NIO.
    /// - Parameter connections: the most connections to a server at a time.
    public init(connections: Int = 4) {
      var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
      configuration.decompression = .disabled
      configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = max(1, connections)
      configuration.httpVersion = .http1Only
      configuration.http1_1ConnectionDebugInitializer = { channel in
        channel.eventLoop.submit {
          let pipeline = channel.pipeline.syncOperations
          let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
          try pipeline.addHandler(StatusGuard(), position: .after(decoder))
        }
      }
      client = HTTPClient(
        eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    deinit {
      // A client must be shut down before its release; the error of a second time is ignored.
      let client = client
      Task { try? await client.shutdown() }
    }

    /// Sends a request and passes the response on in pieces; see
    /// ``HTTPTransport/stream(_:head:body:)``.
    public func stream(
      _ request: HTTPTransportRequest,
      head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
      body: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
      let request = try request.checked()
      var message = HTTPClientRequest(url: request.url)
      message.method = HTTPMethod(rawValue: request.method)
      for (name, value) in request.headers { message.headers.add(name: name, value: value) }
      if request.hasBody { message.body = .bytes(request.body) }
      do {
        let response = try await client.execute(message, deadline: .distantFuture)
        let fields = response.headers.map { (name: $0.name, value: $0.value) }
        try head(HTTPTransportAnswer(status: Int(response.status.code), fields: fields))
        for try await buffer in response.body { try body(Array(buffer.readableBytesView)) }
        try Task.checkCancellation()
      } catch let error as PeerError {
        throw error
      } catch {
        try Task.checkCancellation()
        throw PeerError(.unavailable, "\(error)")
      }
    }

    /// Shuts the HTTP client down; running calls fail.
    public func close() async { try? await client.shutdown() }
  }

  /// Closes connections that send a status below 100, or interim responses without end. The client
  /// ignores both, and crashes at a body after such a status.
  private final class StatusGuard: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    private static let mostInterim = 1_000
    private var interim = 0
    private var hasEnded = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard !hasEnded else { return }
      if case .head(let head) = unwrapInboundIn(data) {
        interim = head.status.code < 200 ? interim + 1 : 0
        hasEnded = head.status.code < 100 || interim > Self.mostInterim
      }
      guard hasEnded else { return context.fireChannelRead(data) }
      context.fireErrorCaught(PeerError(.unavailable, "the server does not speak HTTP"))
      context.close(promise: nil)
    }
  }
#endif
