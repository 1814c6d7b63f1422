internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes

/// Tells the ``ConnectionTable`` what its connection is at.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let table: ConnectionTable
  /// Whether the request has come whole.
  private var isWhole = true
  /// Whether the answer has left before that.
  private var isAnswered = false

  init(_ table: ConnectionTable) { self.table = table }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let id = ObjectIdentifier(context.channel)
    switch unwrapInboundIn(data) {
    case .head:
      isWhole = false
      isAnswered = false
      table.set(.reading, id)
    case .body: break
    case .end:
      isWhole = true
      table.set(isAnswered ? .idle : .working, id)
    }
    context.fireChannelRead(data)
  }

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
      let written = promise ?? context.eventLoop.makePromise()
      let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
      written.futureResult.whenSuccess {
        let handler = handler.value
        handler.isAnswered = true
        handler.table.set(handler.isWhole ? .idle : .lingering, id)
      }
      context.write(data, promise: written)
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
