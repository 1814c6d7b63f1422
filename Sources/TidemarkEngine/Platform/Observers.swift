/// The observers of something, which are called on the thread of whoever has changed it.
package final class Observers: Sendable {
  private struct State {
    var next = 0
    var calls: [(token: Int, call: @Sendable () -> Void)] = []
  }

  private let state = Lock(State())

  package init() {}

  /// - Returns: what to pass to ``stopObserving(_:)``.
  package func observe(_ body: @escaping @Sendable () -> Void) -> Int {
    state.withLock { state in
      state.next += 1
      state.calls.append((state.next, body))
      return state.next
    }
  }

  package func stopObserving(_ token: Int) {
    state.withLock { $0.calls.removeAll { $0.token == token } }
  }

  package func notify() { for (_, call) in state.withLock({ $0.calls }) { call() } }
}
