// SAFETY: `state` is touched only while the mutex is held. What a body returns may be anything:
// callers must not let parts of a state that is not Sendable escape through it.

/// State behind a mutex, with a condition on which threads wait for the state to change.
package final class Monitor<State>: @unchecked Sendable {
  private let mutex = PosixMutex()
  // The mutex makes access exclusive, so Swift need not check that at run time.
  @exclusivity(unchecked)
  private var state: State

  package init(_ state: sending State) { unsafe self.state = state }

  /// Locks the mutex, calls `body` with the state, and unlocks. Not reentrant. Wakes no waiter:
  /// callers that have changed the state call ``signal()`` or ``broadcast()`` afterwards.
  package func withLock<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
    mutex.lock()
    defer { mutex.unlock() }
    return unsafe try body(&state)
  }

  /// Waits until `ready` returns true; it is called with the mutex held, at once and after each
  /// wake-up, and may change the state.
  package func wait(until ready: (inout State) -> Bool) { wait { ready(&$0) ? () : nil } }

  /// Waits until `take` returns a value; it is called as `ready` of ``wait(until:)`` is.
  package func wait<R>(for take: (inout State) -> R?) -> R {
    mutex.lock()
    defer { mutex.unlock() }
    while true {
      if let value = unsafe take(&state) { return value }
      mutex.wait()
    }
  }

  /// Like ``wait(until:)``, but no longer than a time.
  /// - Returns: whether `ready` returned true; it is called a last time when the time is over.
  package func wait(
    timeoutNanoseconds: UInt64, until ready: (inout State) -> Bool
  ) -> Bool { wait(timeoutNanoseconds: timeoutNanoseconds) { ready(&$0) ? true : nil } ?? false }

  /// Like ``wait(for:)``, but no longer than a time.
  /// - Returns: nil when the time is over; `take` is called a last time then.
  package func wait<R>(timeoutNanoseconds: UInt64, for take: (inout State) -> R?) -> R? {
    let clock = SystemClock()
    let start = clock.monotonicNanoseconds()
    mutex.lock()
    defer { mutex.unlock() }
    while true {
      if let value = unsafe take(&state) { return value }
      let waited = clock.monotonicNanoseconds() - start
      if waited >= timeoutNanoseconds { return nil }
      mutex.wait(forNanoseconds: timeoutNanoseconds - waited)
    }
  }

  /// Wakes one waiter, as ``broadcast()`` wakes all.
  package func signal() { mutex.signal() }
  package func broadcast() { mutex.broadcast() }
}
