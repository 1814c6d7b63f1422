/// A memtable of the index: the keys written since the newest sorted run, each with its newest slot
/// (sequence, label set, size). An ``Index`` owns an active one, and a frozen one during a merge.
///
/// Used under the lock of the index's owner. But a frozen memtable's keys and slots no longer
/// change, so a merge reads `store` without the lock. `order` and `labels` are sorted lazily even
/// then, so the merge takes copies of those.
final class Memtable {
  let store = SlotStore()
  private let table = SlotTable()
  /// Slot numbers in key order, as far as ``sortOrder()`` has come: numbers 0..<`order.count`.
  private(set) var order = SortedSlots()
  var labels = MemtableLabels()
  /// How many of its keys are live here, less how many of them are live in the layers beneath.
  var liveChange = 0

  var count: Int { store.count }

  var memoryBytes: Int {
    store.memoryBytes + table.memoryBytes + order.memoryBytes + labels.memoryBytes
  }

  @inline(__always)
  func find(_ key: RawSpan, _ hash: UInt64) -> Int? { table.find(hash, key, in: store) }

  @inline(__always)
  func slot(of key: RawSpan, _ hash: UInt64) -> Slot? { find(key, hash).map { store.slot($0) } }

  /// Asks the processor for the memory that finding some keys needs, for all keys at once.
  func prefetch(_ hashes: [UInt64]) {
    for hash in hashes { table.prefetch(hash) }
    var hasAny = false
    for hash in hashes {
      guard let number = table.probableNumber(hash) else { continue }
      store.prefetchRecord(number)
      hasAny = true
    }
    guard hasAny else { return }
    for hash in hashes { if let number = table.probableNumber(hash) { store.prefetchKey(number) } }
  }

  /// Adds a key that is not in here; its slot number is `count` before the call.
  func insert(_ key: RawSpan, _ hash: UInt64, _ slot: Slot) {
    let number = store.count
    store.append(key, slot)
    table.insert(hash, number)
  }

  /// Sorts new slot numbers into `order`. Under the owner's lock, also if the memtable is frozen.
  func sortOrder() {
    guard order.count < store.count else { return }
    order.append(order.count..<store.count)
    order.sortTail(store)
  }

  /// Whether all parts agree; for tests.
  func _checkInvariants(seed: UInt64) -> Bool {
    guard order.count == store.count, order._checkInvariants(store) else { return false }
    let store = self.store
    for number in 0..<store.count {
      let key = store.key(number)
      guard find(key, KeyHash.hash(key, seed: seed)) == number else { return false }
    }
    labels.distributeWaiting()
    return labels.candidates.allSatisfy { $0._checkInvariants(store) }
  }
}
