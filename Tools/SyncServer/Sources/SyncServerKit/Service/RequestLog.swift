internal import Logging
internal import TidemarkSyncServer

/// Logs a line for each failed request, and optionally for all requests, up to a number of lines in
/// a second. The lines have nothing of bodies or tokens.
final class RequestLog: Sendable {
  /// What is logged of a request.
  struct Entry: Sendable {
    let start = ContinuousClock.now
    var method: String
    var route = "none"
    var database: String?
    var address = ""
    var status = 0

    init(method: String) { self.method = method }
  }

  private struct State {
    var second = ContinuousClock.now
    var lines = 0
    var suppressed = 0
  }

  private let logger: Logger
  private let most: Int
  private let logsAll: Bool
  private let state = PosixMutex(State())

  init(_ logger: Logger, linesPerSecond: Int, logsAll: Bool) {
    self.logger = logger
    self.logsAll = logsAll
    most = linesPerSecond
  }

  /// Logs a request that was answered.
  func finished(_ entry: Entry, _ error: PeerError?, in time: Duration) {
    guard error != nil || logsAll, mayWrite() else { return }
    var metadata = metadata(entry)
    metadata["milliseconds"] = "\(Int(time / .milliseconds(1)))"
    guard let error else { return logger.info("request", metadata: metadata) }
    metadata["error"] = "\(error)"
    logger.log(
      level: entry.status >= 500 ? .error : .notice, "request failed", metadata: metadata)
  }

  private func metadata(_ entry: Entry) -> Logger.Metadata {
    var metadata: Logger.Metadata = [
      "method": "\(entry.method.prefix(16))", "route": "\(entry.route)",
      "status": "\(entry.status)", "address": "\(entry.address)",
    ]
    if let database = entry.database { metadata["database"] = "\(database)" }
    return metadata
  }

  private func mayWrite() -> Bool {
    let (isAllowed, suppressed) = state.withLock { state -> (Bool, Int) in
      var suppressed = 0
      let now = ContinuousClock.now
      if now - state.second >= .seconds(1) {
        suppressed = state.suppressed
        state = State(second: now)
      }
      guard state.lines < most else {
        state.suppressed += 1
        return (false, suppressed)
      }
      state.lines += 1
      return (true, suppressed)
    }
    if suppressed > 0 {
      logger.notice("more requests were not logged", metadata: ["count": "\(suppressed)"])
    }
    return isAllowed
  }
}
