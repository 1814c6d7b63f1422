/// Callbacks that ``notify()`` calls, on the thread of whoever has changed something.
package final class Observers: Sendable {
  private struct State {
    var next = 0
    var calls: [(token: Int, call: @Sendable () -> Void)] = []
  }

  private let state = Lock(State())

  package init() {}

  /// Adds a callback. Several threads may call it at the same time.
  /// - Returns: what to pass to ``stopObserving(_:)``.
  package func observe(_ body: @escaping @Sendable () -> Void) -> Int {
    state.withLock { state in
      state.next += 1
      state.calls.append((state.next, body))
      return state.next
    }
  }

  /// Takes a callback away; one that is under way on another thread may still come.
  package func stopObserving(_ token: Int) {
    state.withLock { $0.calls.removeAll { $0.token == token } }
  }

  /// Calls all callbacks, without the lock: they may observe or stop observing.
  package func notify() { for (_, call) in state.withLock({ $0.calls }) { call() } }
}
