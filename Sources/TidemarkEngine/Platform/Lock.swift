#if !TIDEMARK_TSAN
  public import Synchronization
#endif

// SAFETY: `state` is touched only while the mutex is held. What a body returns may be anything:
// callers must not let parts of a state that is not Sendable escape through it.

/// State behind a mutex.
///
/// Built on `Synchronization.Mutex`. With ThreadSanitizer it is built on a mutex of the C library,
/// since the sanitizer does not see how `Mutex` orders memory on Linux and reports false races.
/// A state that must not leave the lock is best not copyable: then the compiler refuses a copy.
///
/// `withLock` is inlinable: other modules would else call its unspecialized generic code, which
/// takes several times as long as the mutex.
@usableFromInline
package final class Lock<State: ~Copyable>: @unchecked Sendable {
  #if TIDEMARK_TSAN
    @usableFromInline let mutex = PosixMutex()
  #else
    @usableFromInline let mutex = Mutex(())
  #endif
  // The mutex makes access exclusive, so Swift need not check that at run time.
  @exclusivity(unchecked)
  @usableFromInline var place: Place

  /// Holds the state, with the sanitizer a byte more: a state without size would share its address
  /// with the mutex, which the sanitizer takes for a race.
  @usableFromInline struct Place: ~Copyable {
    @usableFromInline var state: State
    #if TIDEMARK_TSAN
      var size: UInt8 = 0
    #endif
  }

  @usableFromInline
  package init(_ state: consuming sending State) { unsafe place = Place(state: state) }

  /// Locks the mutex, calls `body` with the state, and unlocks. Not reentrant.
  @inlinable
  @inline(__always)
  package func withLock<R, E: Error>(_ body: (inout State) throws(E) -> R) throws(E) -> R {
    #if TIDEMARK_TSAN
      mutex.lock()
      defer { mutex.unlock() }
      return unsafe try body(&place.state)
    #else
      return try mutex.withLock { _ throws(E) in
        unsafe Handed(value: try body(&place.state))
      }.value
    #endif
  }
}

#if !TIDEMARK_TSAN
  /// Carries a result that is not Sendable out of `Mutex.withLock`, which would refuse it.
  @usableFromInline struct Handed<Value>: @unchecked Sendable {
    @usableFromInline var value: Value

    @inlinable init(value: Value) { self.value = value }
  }
#endif
