internal import Synchronization

/// 64 bits that many threads set and one takes, without a lock. The taker sees what was done before
/// a bit was set.
package final class AtomicBits: Sendable {
  private let bits = Atomic<UInt64>(0)

  package init() {}

  package var isEmpty: Bool { bits.load(ordering: .acquiring) == 0 }

  package func set(_ number: Int) {
    bits.bitwiseOr(1 << UInt64(number), ordering: .acquiringAndReleasing)
  }

  /// Clears all bits.
  /// - Returns: those that were set.
  package func take() -> UInt64 {
    isEmpty ? 0 : bits.exchange(0, ordering: .acquiringAndReleasing)
  }
}
