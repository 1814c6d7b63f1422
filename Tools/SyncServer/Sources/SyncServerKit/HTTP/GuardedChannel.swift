internal import HummingbirdCore
internal import Logging
internal import NIOCore

/// A connection that the ``ConnectionTable`` has room for.
struct GuardedChannel<Base: ServerChildChannel>: ServerChildChannel {
  private let base: Base
  private let table: ConnectionTable

  init(_ base: Base, _ table: ConnectionTable) {
    self.base = base
    self.table = table
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
    guard table.add(channel) else {
      channel.close(promise: nil)
      return channel.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
    }
    return base.setup(channel: channel, logger: logger)
  }

  func handle(value: Base.Value, logger: Logger) async {
    await base.handle(value: value, logger: logger)
  }
}
