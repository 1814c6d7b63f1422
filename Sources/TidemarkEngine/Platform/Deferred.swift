/// A result that a thread of its own computes while the owner goes on. Where no thread is wanted,
/// or the system gives none, `init` computes it before it returns.
final class Deferred<Output: Sendable>: Sendable {
  private let result = Lock<Result<Output, TidemarkError>?>(nil)
  private let thread: WorkerThread?

  /// - Parameters:
  ///   - name: the thread's name.
  ///   - usesThread: whether to start a thread; else `body` is called before this returns.
  ///   - yields: whether the thread lets others have the processor first.
  ///   - body: computes the result; called once.
  init(
    name: String, usesThread: Bool, yields: Bool = false,
    _ body: @escaping @Sendable () throws(TidemarkError) -> Output
  ) {
    let result = result
    let work: @Sendable () -> Void = {
      let outcome = Result(catching: body)
      result.withLock { $0 = outcome }
    }
    thread = usesThread ? try? WorkerThread(name: name, yields: yields, work) : nil
    if thread == nil { work() }
  }

  /// Waits for the result, or throws what `body` threw. May be called again, from any thread.
  func value() throws(TidemarkError) -> Output {
    thread?.join()
    guard let result = result.withLock({ $0 }) else {
      throw TidemarkError(.inputOutput, "a thread ended before its work was done")
    }
    return try result.get()
  }
}
