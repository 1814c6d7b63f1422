internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension HostState {
  private static let longestPatience = Backoff.longestRequest + Backoff.longestSpread

  /// Saves the time before which the peer wants no call (`Retry-After`), so that it also holds
  /// after a restart.
  mutating func recordPatience(_ time: Duration) throws {
    let time = min(time, Self.longestPatience)
    status.patienceEnds = engine.environment.clock.now().sinceEpoch + time.wholeMilliseconds
    try recordStatus()
  }

  /// The error that stands for a saved `Retry-After` that has not passed; nil if there is none. A
  /// longer rest than `longestPatience` means that the clock was set back, and is ignored.
  mutating func patience() throws(TidemarkError) -> PeerError? {
    _ = try session()
    let now = engine.environment.clock.now().sinceEpoch
    guard status.patienceEnds > now else { return nil }
    let left = Duration.milliseconds(Int64(clamping: status.patienceEnds - now))
    guard left <= Self.longestPatience else { return nil }
    return PeerError(
      .busy, "it has asked for no calls for \(left.wholeSeconds) s", retryAfter: left)
  }
}
