internal import NIOConcurrencyHelpers

// SAFETY: `state` is touched only while the lock is held.

/// State that the calls of all databases ask for, behind a mutex of the C library.
///
/// `Synchronization.Mutex` hands itself over on Linux: who waits longest owns it from then on, also
/// while the system still wakes that thread, and meanwhile everybody else comes too late as well.
/// With more threads than processors one meeting leads to the next.
final class PosixMutex<State>: @unchecked Sendable {
  private let lock = NIOLock()
  private var state: State

  init(_ state: sending State) { self.state = state }

  /// Runs `body` with the state, alone. Not reentrant.
  func withLock<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
    lock.lock()
    defer { lock.unlock() }
    return try body(&state)
  }
}
