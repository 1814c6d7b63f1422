internal import Synchronization

/// A signal that many threads raise and one takes, without a lock.
///
/// The taker sees what was done before it was raised.
package final class AtomicSignal: Sendable {
  private let flag = Atomic<Bool>(false)

  package init() {}

  package var isRaised: Bool { flag.load(ordering: .acquiring) }

  /// - Returns: whether it was down before.
  package func raise() -> Bool { !flag.exchange(true, ordering: .acquiringAndReleasing) }

  /// - Returns: whether it was raised.
  @discardableResult
  package func take() -> Bool { flag.exchange(false, ordering: .acquiringAndReleasing) }
}
