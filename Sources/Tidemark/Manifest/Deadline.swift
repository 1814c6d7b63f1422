internal import TidemarkEngine

/// A question that somebody waits for no longer than he wants, whether or not it can be called off.
///
/// A source that heeds no cancellation must not hang its asker: the question goes on by itself
/// then, and nobody hears the answer.
final class Deadline<Answer: Sendable>: Sendable {
  private struct State {
    var waiter: CheckedContinuation<Answer, any Error>?
    var result: Result<Answer, any Error>?
  }

  private let state = Lock(State())

  /// - Parameters:
  ///   - limit: for how long to wait.
  ///   - sleep: waits.
  ///   - ask: is asked.
  /// - Throws: what `ask` throws; `timedOut`; `CancellationError`.
  static func answer(
    within limit: Duration, sleep: @escaping @Sendable (Duration) async throws -> Void,
    _ ask: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer {
    let deadline = Deadline()
    let question = Task {
      do { deadline.end(.success(try await ask())) } catch { deadline.end(.failure(error)) }
    }
    let timer = Task {
      do { try await sleep(limit) } catch { return }
      deadline.end(
        .failure(
          TidemarkError(.timedOut, "the source has not answered within \(limit); ask it later")))
    }
    defer {
      question.cancel()
      timer.cancel()
    }
    return try await withTaskCancellationHandler {
      try await deadline.wait()
    } onCancel: {
      deadline.end(.failure(CancellationError()))
    }
  }

  private func wait() async throws -> Answer {
    try await withCheckedThrowingContinuation { continuation in
      let result = state.withLock { state in
        if state.result == nil { state.waiter = continuation }
        return state.result
      }
      if let result { continuation.resume(with: result) }
    }
  }

  private func end(_ result: Result<Answer, any Error>) {
    let waiter = state.withLock { state -> CheckedContinuation<Answer, any Error>? in
      guard state.result == nil else { return nil }
      state.result = result
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(with: result)
  }
}
