internal import Synchronization

/// A number that threads raise and read without a lock. Readers see what was done before it rose.
final class AtomicCounter: Sendable {
  private let number: Atomic<UInt64>

  init(_ value: UInt64 = 0) { number = Atomic(value) }

  var value: UInt64 { number.load(ordering: .acquiring) }
  func set(_ value: UInt64) { number.store(value, ordering: .releasing) }
  func raise(by more: UInt64 = 1) {
    number.wrappingAdd(more, ordering: .acquiringAndReleasing)
  }
}
