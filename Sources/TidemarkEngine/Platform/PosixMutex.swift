internal import CTidemark

// SAFETY: the C object stays at its address from `init` to `deinit`, which runs when nobody can
// call it any more; its functions may be called from any thread.

/// A mutex of the C library with one condition variable; a failing call ends the process.
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

  /// Releases the mutex, which the caller holds, waits to be woken and takes it again. May return
  /// without a wake-up, so callers check their condition in a loop.
  func wait() { unsafe ctidemark_monitor_wait(monitor) }

  /// Like ``wait()``, but no longer than a time.
  func wait(forNanoseconds nanoseconds: UInt64) {
    unsafe ctidemark_monitor_wait_for(monitor, nanoseconds)
  }

  func signal() { unsafe ctidemark_monitor_signal(monitor) }
  func broadcast() { unsafe ctidemark_monitor_broadcast(monitor) }
}
