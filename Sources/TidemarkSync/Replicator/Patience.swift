internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension HostState {
  private static let longestPatience = Backoff.longestRequest + Backoff.longestSpread

  /// Stores the time before which the peer wants no call (`Retry-After`), so that it also holds
  /// after a restart.
  mutating func recordPatience(_ time: Duration) throws {
    let time = min(time, Self.longestPatience)
    status.patienceEnds = engine.environment.clock.now().sinceEpoch + time.wholeMilliseconds
    try recordStatus()
  }

  /// The peer's wish to be left alone, as the failure that a call would have; nil where there is
  /// none. A time that is further away than any that is written down was noted by another clock.
  mutating func patience() throws(TidemarkError) -> PeerError? {
    _ = try session()
    let now = engine.environment.clock.now().sinceEpoch
    guard status.patienceEnds > now else { return nil }
    let left = Duration.milliseconds(Int64(clamping: status.patienceEnds - now))
    guard left <= Self.longestPatience else { return nil }
    return PeerError(
      .busy, "it has asked for patience, which ends in \(left.wholeSeconds) s", retryAfter: left)
  }
}
