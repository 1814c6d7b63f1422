internal import NIOCore
internal import NIOPosix
internal import Synchronization
internal import TidemarkSyncServer

/// A connection that makes one call after the other, on the thread of its event loop: a client that
/// is as cheap as possible, to leave the processor to the server.
final class CallConnection: ChannelInboundHandler, Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer
  typealias Completion = @Sendable (_ status: Int, _ body: [UInt8]) -> Void

  private struct State {
    var received = ByteBuffer()
    var completion: Completion?
  }

  private let state = Mutex(State())
  let loop: any EventLoop

  private init(_ loop: any EventLoop) { self.loop = loop }

  /// Connects to a port of this machine.
  static func open(
    _ port: Int, on group: any EventLoopGroup
  ) async throws -> (CallConnection, any Channel) {
    let loop = group.next()
    let connection = CallConnection(loop)
    let channel = try await ClientBootstrap(group: loop)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(connection)
        }
      }
      .connect(host: "127.0.0.1", port: port).get()
    return (connection, channel)
  }

  /// Makes a call; only on the event loop. The status is 0 if the connection ends.
  func call(
    _ message: WireMessage, of database: String, _ channel: any Channel,
    _ completion: @escaping Completion
  ) {
    guard let body = try? WireCoder(codec: .none).encode(message) else {
      return completion(0, [])
    }
    state.withLock { $0.completion = completion }
    var buffer = channel.allocator.buffer(capacity: body.count + 256)
    buffer.writeString(
      """
      POST /\(database)/v1/\(message.kind.name) HTTP/1.1\r
      Host: localhost\r
      Content-Type: \(WireFrame.contentType)\r
      Content-Length: \(body.count)\r
      \r\n
      """)
    buffer.writeBytes(body)
    channel.writeAndFlush(buffer, promise: nil)
  }

  /// Makes a call and waits for its answer.
  func answer(
    _ message: WireMessage, of database: String, _ channel: any Channel
  ) async throws -> WireMessage {
    let promise = loop.makePromise(of: WireMessage.self)
    loop.execute {
      self.call(message, of: database, channel) { status, body in
        promise.completeWith(
          Result {
            guard status != 0 else { throw BenchError("the connection ended") }
            return try WireCoder().decode(body)
          })
      }
    }
    return try await promise.futureResult.get()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var part = unwrapInboundIn(data)
    let answered = state.withLock { state -> (Completion?, Int, [UInt8])? in
      state.received.writeBuffer(&part)
      guard let (status, body) = Self.takeAnswer(&state.received) else { return nil }
      defer { state.completion = nil }
      return (state.completion, status, body)
    }
    if let (completion, status, body) = answered { completion?(status, body) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    let completion = state.withLock { state in
      defer { state.completion = nil }
      return state.completion
    }
    completion?(0, [])
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  /// More bytes than any head of the server has.
  private static let mostHeadBytes = 4_096

  /// Removes an answer from the received bytes, once it is complete.
  private static func takeAnswer(_ buffer: inout ByteBuffer) -> (Int, [UInt8])? {
    let bytes = buffer.readableBytesView.prefix(mostHeadBytes)
    guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
    let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).lowercased()
    let lines = head.split(separator: "\r\n")
    let length = lines.first { $0.hasPrefix("content-length:") }
    let bodyBytes = length.flatMap { Int($0.drop { !$0.isNumber }) } ?? 0
    let headBytes = bytes.distance(from: bytes.startIndex, to: end.upperBound)
    guard buffer.readableBytes >= headBytes + bodyBytes else { return nil }
    buffer.moveReaderIndex(forwardBy: headBytes)
    let body = buffer.readBytes(length: bodyBytes) ?? []
    buffer.clear()
    let status = lines.first?.split(separator: " ").dropFirst().first
    return (status.flatMap { Int($0) } ?? 0, body)
  }
}
