/// How a source that fails is asked again.
public struct RetryPolicy: Sendable, Hashable {
  /// How often it is asked in all.
  public var attempts: Int
  /// How long the first pause is; each one is twice the one before.
  public var pause: Duration
  /// How long a pause is at most.
  public var longestPause: Duration

  /// A policy; without parameters a source is asked once.
  public init(
    attempts: Int = 1, pause: Duration = .milliseconds(200), longestPause: Duration = .seconds(10)
  ) {
    self.attempts = attempts
    self.pause = pause
    self.longestPause = longestPause
  }

  private func pause(after attempt: Int) -> Duration {
    var pause = pause
    for _ in 1..<max(1, min(attempt, 40)) where pause < longestPause { pause = pause * 2 }
    return min(pause, longestPause)
  }

  /// Asks, and asks again where that fails.
  /// - Parameters:
  ///   - limit: how long each answer may take; nil for as long as somebody waits.
  ///   - timer: waits for the end of the limit.
  ///   - sleep: waits between two attempts.
  ///   - ask: asks.
  /// - Throws: what the last attempt has thrown; `CancellationError`.
  func answer<Answer: Sendable>(
    within limit: Duration?, timer: @escaping @Sendable (Duration) async throws -> Void,
    sleep: @Sendable (Duration) async throws -> Void,
    _ ask: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer {
    var attempt = 1
    while true {
      do {
        guard let limit else { return try await ask() }
        return try await Deadline.answer(within: limit, sleep: timer, ask)
      } catch {
        guard attempt < attempts, !(error is CancellationError) else { throw error }
      }
      try Task.checkCancellation()
      try await sleep(pause(after: attempt))
      attempt += 1
    }
  }
}
