internal import Synchronization

/// A number that threads raise and look at without a lock.
final class AtomicCounter: Sendable {
  private let number = Atomic<UInt64>(0)

  var value: UInt64 { number.load(ordering: .acquiring) }

  func raise() { number.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}
