internal import Synchronization

// SAFETY: the word is 0 or the address of an object that was retained for it. It changes once, and
// `deinit` releases the object, when nobody can read the word any more.

/// A reference that is set once and read without a lock from then on.
///
/// `AtomicLazyReference` does the same, but is not specialized in programs that are built on it:
/// each load asks the runtime for its type.
struct OnceReference<Object: AnyObject & Sendable>: ~Copyable, Sendable {
  private let word = Atomic<UInt>(0)

  /// The object; nil before it was set.
  @inline(__always)
  var object: Object? { Self.object(word.load(ordering: .acquiring)) }

  @inline(__always)
  private static func object(_ word: UInt) -> Object? {
    guard let address = unsafe UnsafeRawPointer(bitPattern: word) else { return nil }
    return unsafe Unmanaged<Object>.fromOpaque(address).takeUnretainedValue()
  }

  /// Sets the object unless somebody did so before.
  /// - Returns: the object that is set from now on, which may be that of another thread.
  func set(_ object: Object) -> Object {
    let retained = unsafe Unmanaged.passRetained(object)
    let new = unsafe UInt(bitPattern: retained.toOpaque())
    let (isSet, original) = word.compareExchange(
      expected: 0, desired: new, ordering: .acquiringAndReleasing)
    if isSet { return object }
    unsafe retained.release()
    return Self.object(original) ?? object
  }

  deinit {
    guard
      let address = unsafe UnsafeRawPointer(bitPattern: word.load(ordering: .acquiring))
    else { return }
    unsafe Unmanaged<Object>.fromOpaque(address).release()
  }
}
