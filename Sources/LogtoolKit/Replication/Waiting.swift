internal import TidemarkEngine

/// Waits for what is asynchronous on the thread of the command.
enum Waiting {
  private static let tickNanoseconds: UInt64 = 50_000_000

  /// Runs `body` in a task and waits for it.
  /// - Parameter tick: called twenty times a second meanwhile.
  /// - Throws: what `body` throws; a silent `interrupted` when the user has stopped it.
  static func run<R: Sendable>(
    _ console: Console, tick: () -> Void = {}, _ body: @escaping @Sendable () async throws -> R
  ) throws -> R {
    let result = Lock<Result<R, any Error>?>(nil)
    let executor = CallerExecutor()
    let task = Task(executorPreference: executor) {
      let outcome: Result<R, any Error>
      do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
      result.withLock { $0 = outcome }
    }
    var isStopped = false
    while true {
      executor.work(nanoseconds: tickNanoseconds)
      if let outcome = result.withLock({ $0 }) {
        if isStopped, case .failure = outcome { throw ToolError.silent(.interrupted) }
        return try outcome.get()
      }
      if !isStopped, console.isInterrupted() {
        isStopped = true
        task.cancel()
      }
      tick()
    }
  }
}
