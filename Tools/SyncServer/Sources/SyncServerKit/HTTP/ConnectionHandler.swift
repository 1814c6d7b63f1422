internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes

/// Reports the phases of its connection to the ``ConnectionTable``.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let table: ConnectionTable
  /// Whether the last request is received completely.
  private var isWhole = true
  /// Whether the last request asks for another protocol. The decoder buffers what follows it
  /// without parsing, so nothing more is read, and its answer ends the connection.
  private var isLast = false
  /// Requests without an answer; more than one if the client pipelines requests.
  private var pending = 0

  init(_ table: ConnectionTable) { self.table = table }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let id = ObjectIdentifier(context.channel)
    switch unwrapInboundIn(data) {
    case .head(let head):
      isWhole = false
      isLast = head.method == .connect || head.headerFields[.upgrade] != nil
      pending += 1
      if pending == 1 { table.set(.reading, id) }
    case .body: break
    case .end:
      isWhole = true
      if pending <= 1 { table.set(pending == 0 ? .idle : .working, id) }
    }
    context.fireChannelRead(data)
  }

  func read(context: ChannelHandlerContext) { if !isLast || !isWhole { context.read() } }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let id = ObjectIdentifier(context.channel)
    switch unwrapOutboundIn(data) {
    case .head(let head):
      if head.status.kind != .informational, table.phase(id) != .waiting {
        table.set(.answering, id)
      }
      context.write(data, promise: promise)
    case .body: context.write(data, promise: promise)
    case .end:
      pending -= 1
      let written = promise ?? context.eventLoop.makePromise()
      let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
      let channel = context.channel
      written.futureResult.whenSuccess {
        handler.value.answered(id)
        if handler.value.isLast, handler.value.pending == 0 { channel.close(promise: nil) }
      }
      context.write(data, promise: written)
    }
  }

  private func answered(_ id: ConnectionTable.ID) {
    if pending > 0 {
      table.answered(id, now: isWhole ? .working : .reading)
    } else {
      table.answered(id, now: isWhole ? .idle : .lingering)
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed = event { table.hungUp(ObjectIdentifier(context.channel)) }
    context.fireUserInboundEventTriggered(event)
  }

  func channelInactive(context: ChannelHandlerContext) {
    table.hungUp(ObjectIdentifier(context.channel))
    context.fireChannelInactive()
  }
}
