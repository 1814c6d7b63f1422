internal import Synchronization

/// State that several threads may use, one at a time.
final class Locked<State: Sendable>: Sendable {
  private let mutex: Mutex<State>

  init(_ state: State) { mutex = Mutex(state) }

  /// Runs `body` with the state, alone.
  func with<R: Sendable, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
    try mutex.withLock { (state: inout sending State) throws(E) -> R in
      try body(&state)
    }
  }
}
