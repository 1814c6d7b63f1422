internal import Synchronization

/// A signal that many threads raise and one takes, without a lock. The taker sees what was done
/// before the signal was raised.
package final class AtomicSignal: Sendable {
  private let flag = Atomic<Bool>(false)

  package init() {}

  package var isRaised: Bool { flag.load(ordering: .acquiring) }

  /// - Returns: whether the signal was down before: of several callers one gets true.
  package func raise() -> Bool { !flag.exchange(true, ordering: .acquiringAndReleasing) }

  /// Puts the signal down.
  /// - Returns: whether it was raised.
  @discardableResult
  package func take() -> Bool { flag.exchange(false, ordering: .acquiringAndReleasing) }
}
