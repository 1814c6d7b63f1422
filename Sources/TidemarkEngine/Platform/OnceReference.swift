internal import Synchronization

/// A reference that is set once and read without a lock from then on.
struct OnceReference<Object: AnyObject & Sendable>: ~Copyable, Sendable {
  private let reference = AtomicLazyReference<Object>()

  /// The object; nil before it was set.
  @inline(__always)
  var object: Object? { reference.load() }

  /// Sets the object unless somebody did so before.
  /// - Returns: the one that is set.
  func set(_ object: Object) -> Object { reference.storeIfNil(object) }
}
