internal import CTidemark

// SAFETY: the C object stays at its address from here to `deinit`, which runs when nobody can
// call it any more; its functions may be called from any thread.

/// A mutex of the C library, with a condition to wait for.
@safe
@usableFromInline struct PosixMutex: ~Copyable, @unchecked Sendable {
  private let monitor: OpaquePointer

  init() {
    guard let monitor = unsafe ctidemark_monitor_create() else {
      preconditionFailure("out of memory")
    }
    unsafe self.monitor = monitor
  }

  deinit { unsafe ctidemark_monitor_destroy(monitor) }

  @usableFromInline func lock() { unsafe ctidemark_monitor_lock(monitor) }

  @usableFromInline func unlock() { unsafe ctidemark_monitor_unlock(monitor) }

  /// Gives the mutex up, waits to be woken, takes it again. May return for no reason.
  func wait() { unsafe ctidemark_monitor_wait(monitor) }

  /// Like ``wait()``, for a time at most.
  func wait(forNanoseconds nanoseconds: UInt64) {
    unsafe ctidemark_monitor_wait_for(monitor, nanoseconds)
  }

  /// Wakes one waiter.
  func signal() { unsafe ctidemark_monitor_signal(monitor) }

  /// Wakes all waiters.
  func broadcast() { unsafe ctidemark_monitor_broadcast(monitor) }
}
