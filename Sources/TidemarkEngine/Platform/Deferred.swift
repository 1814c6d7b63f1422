/// Something that is worked out on a thread of its own while its owner goes on, or at once where
/// no thread is wanted or to be had.
final class Deferred<Output: Sendable>: Sendable {
  private let result = Lock<Result<Output, TidemarkError>?>(nil)
  private let thread: WorkerThread?

  /// - Parameters:
  ///   - name: the thread's.
  ///   - usesThread: whether to start one; else `body` is called before this returns.
  ///   - yields: whether that lets others have the processor first.
  ///   - body: works it out.
  init(
    name: String, usesThread: Bool, yields: Bool = false,
    _ body: @escaping @Sendable () throws(TidemarkError) -> Output
  ) {
    let result = result
    let work: @Sendable () -> Void = {
      let outcome: Result<Output, TidemarkError>
      do throws(TidemarkError) { outcome = .success(try body()) } catch {
        outcome = .failure(error)
      }
      result.withLock { $0 = outcome }
    }
    thread = usesThread ? try? WorkerThread(name: name, yields: yields, work) : nil
    if thread == nil { work() }
  }

  /// Waits for it.
  func value() throws(TidemarkError) -> Output {
    thread?.join()
    guard let result = result.withLock({ $0 }) else {
      throw TidemarkError(.inputOutput, "a thread ended before its work was done")
    }
    return try result.get()
  }
}
