/// The keys written since the newest run, each with its newest slot.
///
/// Mutated by one thread at a time. Once frozen, keys and slots no longer change, so that a
/// merge may read `store` while others read too; order and candidates are sorted lazily, so a
/// merge takes copies of those.
final class Delta {
  let store = SlotStore()
  private let table = SlotTable()
  /// Slot numbers by key: the first ones, up to those that were added since somebody wanted them
  /// in order.
  private(set) var order = SortedSlots()
  var labels = DeltaLabels()
  /// Live keys here less live keys that they replace beneath.
  var liveChange = 0

  var count: Int { store.count }

  var memoryBytes: Int {
    store.memoryBytes + table.memoryBytes + order.memoryBytes + labels.memoryBytes
  }

  @inline(__always)
  func find(_ key: RawSpan, _ hash: UInt64) -> Int? { table.find(hash, key, in: store) }

  /// Asks the processor for what finding some keys will touch.
  func prefetch(_ hashes: [UInt64]) {
    for hash in hashes { table.prefetch(hash) }
    var isKnown = false
    for hash in hashes {
      guard let number = table.likely(hash) else { continue }
      store.prefetchRecord(number)
      isKnown = true
    }
    guard isKnown else { return }
    for hash in hashes { if let number = table.likely(hash) { store.prefetchKey(number) } }
  }

  /// Adds a key that is not in here.
  func insert(_ key: RawSpan, _ hash: UInt64, _ slot: Slot) {
    let number = store.count
    store.append(key, slot)
    table.insert(hash, number)
  }

  /// Makes ordered access possible.
  func settleOrder() {
    guard order.count < store.count else { return }
    order.append(order.count..<store.count)
    order.settle(store)
  }

  /// All slot numbers by key, whether ordered access is possible or not.
  func sorted(from order: SortedSlots) -> [UInt32] {
    var all = order
    all.append(all.count..<store.count)
    return all.sorted(store)
  }

  /// Whether all parts agree; for tests.
  func _checkInvariants(seed: UInt64) -> Bool {
    guard order.count == store.count, order._checkInvariants(store) else { return false }
    let store = self.store
    for number in 0..<store.count {
      let key = store.key(number)
      guard find(key, KeyHash.hash(key, seed: seed)) == number else { return false }
    }
    labels.handOut()
    return labels.candidates.allSatisfy { $0._checkInvariants(store) }
  }
}
