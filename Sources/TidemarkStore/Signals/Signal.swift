internal import TidemarkEngine

/// Wakes tasks that wait for something to happen. It counts, so that what happens while nobody
/// waits is not lost.
package final class Signal: Sendable {
  private struct State {
    var count: UInt64 = 0
    /// The count when ``sleep()`` ended last.
    var seen: UInt64 = 0
    var nextID = 0
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Lock(State())

  package init() {}

  /// How often it was raised.
  package var count: UInt64 { state.withLock { $0.count } }

  /// Wakes all who wait. Cheap when nobody does: writers call it.
  package func raise() {
    let waiters = state.withLock { state in
      state.count += 1
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume() }
  }

  /// The first answer: asks now and whenever it was raised.
  package func first<T>(_ body: () async throws -> T?) async throws -> T {
    while true {
      let seen = count
      if let answer = try await body() { return answer }
      await wait(beyond: seen)
      try Task.checkCancellation()
    }
  }

  /// Waits until it was raised more often than that, or the task is cancelled.
  package func wait(beyond count: UInt64) async {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isDue = state.withLock { state in
          // Cancelling before this leaves its trace in the task.
          if state.count > count || Task.isCancelled { return true }
          state.waiters[id] = continuation
          return false
        }
        if isDue { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
  }
  /// Waits until it was raised since the last sleep, or the task is cancelled; for one task.
  package func sleep() async {
    await wait(beyond: state.withLock { $0.seen })
    state.withLock { $0.seen = $0.count }
  }
}

/// Wakes a task at every change of the visible or the durable sequence, as long as it lives.
package final class SequenceWatch: Sendable {
  package let wakeup = Signal()
  private let engine: Engine
  private let token: Int

  package init(_ engine: Engine) {
    self.engine = engine
    token = engine.observe { [wakeup] in wakeup.raise() }
  }

  deinit { engine.stopObserving(token) }
}
