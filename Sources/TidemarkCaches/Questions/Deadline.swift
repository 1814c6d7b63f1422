internal import TidemarkEngine

/// A question that somebody waits for no longer than he wants, whether or not it can be called off.
///
/// A source that heeds no cancellation must not hang its asker: the question goes on by itself
/// then, and nobody hears the answer.
enum Deadline {
  /// - Parameters:
  ///   - limit: for how long to wait.
  ///   - sleep: waits.
  ///   - ask: is asked.
  /// - Throws: what `ask` throws; `timedOut`; `CancellationError`.
  static func answer<Answer: Sendable>(
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
