internal import Synchronization

/// A flag that threads set and look at without a lock; relaxed, so that it orders no other memory.
final class AtomicFlag: Sendable {
  private let flag = Atomic<Bool>(false)

  @inline(__always)
  var isSet: Bool {
    get { flag.load(ordering: .relaxed) }
    set { flag.store(newValue, ordering: .relaxed) }
  }
}
