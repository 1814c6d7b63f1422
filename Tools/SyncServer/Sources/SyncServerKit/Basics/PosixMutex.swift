internal import NIOConcurrencyHelpers

/// State that the calls of all databases ask for, behind a mutex of the C library.
///
/// `Synchronization.Mutex` hands itself over on Linux: who waits longest owns it from then on, also
/// while the system still wakes that thread, and meanwhile everybody else comes too late as well.
/// With more threads than processors one meeting leads to the next.
final class PosixMutex<State: Sendable>: Sendable {
  private let box: NIOLockedValueBox<State>

  init(_ state: State) { box = NIOLockedValueBox(state) }

  /// Runs `body` with the state, alone. Not reentrant.
  func withLock<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
    let result: Result<R, E> = box.withLockedValue { state in
      do throws(E) { return .success(try body(&state)) } catch { return .failure(error) }
    }
    return try result.get()
  }
}
