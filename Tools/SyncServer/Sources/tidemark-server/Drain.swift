internal import Logging
internal import ServiceLifecycle
internal import SyncServerKit
internal import UnixSignals

/// At SIGTERM, lets the server go on for a while as one that is not ready, and then ends it: a
/// balancer that asks for `/ready` sends it nothing more by then.
struct Drain: Service {
  let server: SyncServer
  let time: Duration
  let logger: Logger

  func run() async throws {
    let signals = await UnixSignalsSequence(trapping: .sigterm)
    for await _ in signals.cancelOnGracefulShutdown() {
      logger.notice("draining", metadata: ["seconds": "\(time / .seconds(1))"])
      server.drain()
      try await Task.sleep(for: time)
      return
    }
  }
}
