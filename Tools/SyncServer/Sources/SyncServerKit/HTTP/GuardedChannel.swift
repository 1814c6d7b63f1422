internal import HummingbirdCore
internal import Logging
internal import NIOCore

/// A connection that is closed at once if the ``ConnectionTable`` has no room for it, and uses TLS
/// if there are certificates.
struct GuardedChannel<Base: ServerChildChannel>: ServerChildChannel {
  private let base: Base
  private let table: ConnectionTable
  private let files: TLSFiles?

  init(_ base: Base, _ table: ConnectionTable, _ files: TLSFiles?) {
    self.base = base
    self.table = table
    self.files = files
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
    guard table.add(channel) else {
      channel.close(promise: nil)
      return channel.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
    }
    return channel.eventLoop.makeCompletedFuture { try files?.secure(channel) }
      .flatMap { _ in base.setup(channel: channel, logger: logger) }
  }

  /// Answers requests on the connection's event loop, which saves waking another thread for each
  /// step. Everything that blocks is done on a ``WorkPool``.
  func handle(value: Base.Value, logger: Logger) async {
    await withTaskExecutorPreference(LoopExecutor(value.channel.eventLoop)) {
      await base.handle(value: value, logger: logger)
    }
  }
}

/// Runs a connection's tasks on its event loop.
///
/// SAFETY: each job is run once.
private final class LoopExecutor: TaskExecutor {
  private let loop: any EventLoop

  init(_ loop: any EventLoop) { self.loop = loop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    loop.execute { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
