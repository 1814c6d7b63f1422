internal import NIOConcurrencyHelpers

/// State that calls of all databases access, protected by a mutex of the C library.
///
/// `Synchronization.Mutex` is fair on Linux: an unlock passes it to the longest waiter, which owns
/// it even while the system still wakes that thread, so that all others wait as well. With more
/// threads than processors one such contention leads to the next.
final class PosixMutex<State: Sendable>: Sendable {
  private let box: NIOLockedValueBox<State>

  init(_ state: State) { box = NIOLockedValueBox(state) }

  /// Runs `body` with exclusive access to the state. Not reentrant.
  func withLock<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
    let result: Result<R, E> = box.withLockedValue { state in
      do throws(E) { return .success(try body(&state)) } catch { return .failure(error) }
    }
    return try result.get()
  }
}
