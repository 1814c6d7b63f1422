internal import TidemarkEngine

/// Wakes tasks that wait for an event. It counts how often it was raised: a task that knows the
/// count from before an event does not miss the event if it begins to wait only afterwards.
package final class Signal: Sendable {
  private struct State {
    var count: UInt64 = 0
    /// The count when ``sleep()`` returned last.
    var seen: UInt64 = 0
    /// Numbers waiters, so that the one that is cancelled can be removed.
    var nextID = 0
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Lock(State())

  package init() {}

  /// How often it was raised.
  package var count: UInt64 { state.withLock { $0.count } }

  /// Wakes all who wait. Writers call it: the lock is brief, and nobody is resumed under it.
  package func raise() {
    let waiters = state.withLock { state in
      state.count += 1
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume() }
  }

  /// Calls `body` now and after each event until it returns something else than nil.
  /// - Throws: what `body` throws, or `CancellationError`.
  package func first<T>(_ body: () async throws -> T?) async throws -> T {
    while true {
      // The count is read before `body`, so an event during the call makes the loop call it again.
      let seen = count
      if let answer = try await body() { return answer }
      await wait(beyond: seen)
      try Task.checkCancellation()
    }
  }

  /// Waits until it was raised more than `count` times in all, or the task is cancelled.
  package func wait(beyond count: UInt64) async {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isDue = state.withLock { state in
          // `onCancel` may have run already, and found no waiter: then `isCancelled` is true.
          if state.count > count || Task.isCancelled { return true }
          state.waiters[id] = continuation
          return false
        }
        if isDue { continuation.resume() }
      }
    } onCancel: {
      // Whoever removes a continuation resumes it, here or in `raise()`: so exactly once.
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
  }

  /// Waits until it was raised since this returned last, or the task is cancelled; for one task.
  package func sleep() async {
    await wait(beyond: state.withLock { $0.seen })
    // Events up to here count as seen: the caller looks for their effects after this returns.
    state.withLock { $0.seen = $0.count }
  }
}

/// Raises a signal at every change of the engine's visible or durable sequence, while it exists.
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
