internal import CTidemark

// SAFETY: the thread takes over the one reference that its argument stands for. The handle is
// joined or detached once, since whoever does that takes the handle out of the lock.

/// A thread of the system with a name, for work that blocks. It runs until `body` returns, also if
/// nobody holds this object any more.
@safe
package final class WorkerThread: @unchecked Sendable {
  /// Enough for the engine, whose big buffers are on the heap; systems' defaults vary widely.
  private static let stackBytes = 1 << 20

  private let handle: Lock<OpaquePointer?>

  /// - Parameters:
  ///   - name: shown by debuggers and `top`; Linux keeps the first 15 bytes.
  ///   - yields: whether it lets others have the processor first: for work that nobody waits for.
  ///     On Linux the threads that it starts do so, too.
  ///   - body: called once, on the thread.
  /// - Throws: `limitExceeded` when the system gives no more threads.
  package init(
    name: String, yields: Bool = false, _ body: @escaping @Sendable () -> Void
  ) throws(TidemarkError) {
    let work = unsafe Unmanaged.passRetained(Work(body))
    var thread: OpaquePointer?
    let result = unsafe ctidemark_thread_start(
      name, Self.stackBytes, yields ? 1 : 0,
      { argument in
        guard let argument = unsafe argument else { return }
        unsafe Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body()
      }, work.toOpaque(), &thread)
    guard result == 0 else {
      // No thread has taken the reference over.
      unsafe work.release()
      throw TidemarkError(
        .limitExceeded,
        "cannot start the thread \(name): \(ErrorNumber.text(result)); raise the limit of "
          + "threads or end other programs")
    }
    unsafe handle = Lock(thread)
  }

  deinit {
    if let thread = unsafe handle.withLock({ unsafe $0 }) { unsafe ctidemark_thread_detach(thread) }
  }

  /// Waits until the thread's work is done; never called on the thread itself. A call while another
  /// one waits, waits for the same end; later calls return at once.
  package func join() {
    unsafe handle.withLock { thread in
      if let joined = unsafe thread { unsafe ctidemark_thread_join(joined) }
      unsafe thread = nil
    }
  }

  private final class Work: Sendable {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
}
