internal import TidemarkEngine

/// The rule by which a failed call of a source is repeated, with growing pauses.
public struct RetryPolicy: Sendable, Hashable {
  /// The number of calls of the source in all; 1, the default, means no retry.
  public var attempts: Int
  /// The pause before the first retry, 200 milliseconds by default; each later pause is twice as
  /// long.
  public var pause: Duration
  /// The longest pause between two calls of the source; 10 seconds by default.
  public var longestPause: Duration

  /// Creates a rule for retries. Without parameters a failed call is not repeated.
  /// - Parameters:
  ///   - attempts: the number of calls in all.
  ///   - pause: the pause before the first retry; each later one is twice as long.
  ///   - longestPause: the upper bound of a pause.
  public init(
    attempts: Int = 1, pause: Duration = .milliseconds(200), longestPause: Duration = .seconds(10)
  ) {
    self.attempts = attempts
    self.pause = pause
    self.longestPause = longestPause
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
    var (attempt, pause) = (1, max(.zero, pause))
    while true {
      do {
        guard let limit else { return try await ask() }
        return try await Self.answer(within: limit, sleep: timer, ask)
      } catch {
        guard attempt < attempts, !(error is CancellationError) else { throw error }
      }
      try Task.checkCancellation()
      pause = min(pause, longestPause)
      try await sleep(pause)
      (attempt, pause) = (attempt + 1, pause * 2)
    }
  }

  /// Asks, and waits no longer than a limit, whether or not the question can be called off.
  ///
  /// A source that heeds no cancellation must not hang its asker: the question goes on by itself
  /// then, and nobody hears the answer.
  /// - Throws: what `ask` throws; `timedOut`; `CancellationError`.
  private static func answer<Answer: Sendable>(
    within limit: Duration, sleep: @escaping @Sendable (Duration) async throws -> Void,
    _ ask: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer {
    let first = Lock<Result<Answer, any Error>?>(nil)
    let change = Signal()
    @Sendable func end(_ result: Result<Answer, any Error>) {
      first.withLock { if $0 == nil { $0 = result } }
      change.raise()
    }
    let question = Task {
      do { end(.success(try await ask())) } catch { end(.failure(error)) }
    }
    let timer = Task {
      do { try await sleep(limit) } catch { return }
      end(
        .failure(
          TidemarkError(.timedOut, "the source has not answered within \(limit); ask it later")))
    }
    defer {
      question.cancel()
      timer.cancel()
    }
    return try await change.first { first.withLock { $0 } }.get()
  }
}
