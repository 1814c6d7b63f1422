internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension HostState {
  private static let longestRetryAfter = Backoff.longestRequest + Backoff.longestSpread

  /// Saves the time before which the peer wants no call (`Retry-After`), so that it also holds
  /// after a restart.
  mutating func recordRetryAfter(_ time: Duration) throws {
    let time = min(time, Self.longestRetryAfter)
    status.retryAfterEnds = engine.environment.clock.now().sinceEpoch + time.wholeMilliseconds
    try recordStatus()
  }

  /// The error that stands for a saved `Retry-After` that has not passed; nil if there is none. A
  /// longer rest than `longestRetryAfter` means that the clock was set back, and is ignored.
  mutating func savedRetryAfter() throws(TidemarkError) -> PeerError? {
    _ = try session()
    let now = engine.environment.clock.now().sinceEpoch
    guard status.retryAfterEnds > now else { return nil }
    let left = Duration.milliseconds(Int64(clamping: status.retryAfterEnds - now))
    guard left <= Self.longestRetryAfter else { return nil }
    return PeerError(
      .busy, "it has asked for no calls for \(left.wholeSeconds) s", retryAfter: left)
  }
}
