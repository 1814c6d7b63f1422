package import TidemarkEngine

/// Runs work that blocks for long (opening, compaction, copies) on a thread of its own, so that
/// the pool on which tasks run is not blocked.
/// - Parameter usesThreads: whether threads are wanted; if not, the caller's thread does the work.
/// - Throws: what `body` throws; `limitExceeded` when the system gives no thread.
package func onOwnThread<R: Sendable>(
  _ name: String, if usesThreads: Bool = true,
  _ body: @escaping @Sendable () throws(TidemarkError) -> R
) async throws(TidemarkError) -> R {
  guard usesThreads else { return try body() }
  let result: Result<R, TidemarkError> = await withCheckedContinuation { continuation in
    do throws(TidemarkError) {
      _ = try WorkerThread(name: name) { continuation.resume(returning: Result(catching: body)) }
    } catch { continuation.resume(returning: .failure(error)) }
  }
  return try result.get()
}
