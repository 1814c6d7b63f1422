/// The key of a value in a ``ClockCache``.
package protocol CacheAddress: Sendable, Equatable {
  /// For the cache's table.
  var hash: UInt64 { get }
}

/// A cache of values decoded from the log (blocks, objects), bounded in bytes, behind one lock.
///
/// Evicts by the clock (second chance) algorithm: F. J. Corbató, "A Paging Experiment with the
/// Multics System", 1968. A hit sets a bit and moves nothing. Values that a scan reads once are
/// evicted before values that were hit again.
package final class ClockCache<Address: CacheAddress, Value: Sendable>: Sendable {
  private struct Slot {
    var address: Address
    var value: Value
    var bytes: Int
    var wasUsed: Bool
  }

  private struct State {
    /// Open addressing: numbers of slots, counted from 1; 0 is empty. Its count is a power of two,
    /// or 0, and at least half of it is empty, so that `find` ends.
    var table: [UInt32] = []
    var slots: [Slot] = []
    /// The slot that the next eviction looks at first.
    var hand = 0
    var bytes = 0
    var limit: Int

    /// The index in the table of an address, or of the empty place for it. Not for an empty table.
    func find(_ address: Address) -> Int {
      let mask = table.count &- 1
      var index = Int(truncatingIfNeeded: address.hash) & mask
      let slots = slots.span
      while table[index] != 0, slots[Int(table[index]) &- 1].address != address {
        index = (index &+ 1) & mask
      }
      return index
    }

    /// Prefetches the table's places, the slots and the values of addresses, in three passes.
    func prefetch(_ addresses: [Address]) {
      let mask = table.count &- 1
      // The array would retain each value, and so wait for its memory; a span does not.
      let slots = slots.span
      // Loads of a pass do not depend on each other. The sum keeps the compiler from removing them.
      var sum: UInt32 = 0
      for address in addresses { sum &+= table[Int(truncatingIfNeeded: address.hash) & mask] }
      var isAny = sum > 0
      for address in addresses {
        let number = Int(table[Int(truncatingIfNeeded: address.hash) & mask])
        if number > 0 { isAny = slots[number &- 1].wasUsed || isAny }
      }
      guard isAny else { return }
      for address in addresses {
        let number = Int(table[Int(truncatingIfNeeded: address.hash) & mask])
        if number > 0 { prefetchObject(slots[number &- 1].value) }
      }
    }

    /// Makes room in the table for one more slot.
    mutating func growIfFull() {
      var size = max(16, table.count)
      while 2 * (slots.count + 1) > size { size *= 2 }
      guard size > table.count else { return }
      table = Array(repeating: 0, count: size)
      for (number, slot) in slots.enumerated() { table[find(slot.address)] = UInt32(number + 1) }
    }

    /// Empties an entry of the table and closes the gap: D. E. Knuth, The Art of Computer
    /// Programming 3, section 6.4, algorithm R.
    mutating func removeFromTable(at index: Int) {
      let mask = table.count - 1
      var hole = index
      var next = (index + 1) & mask
      while table[next] != 0 {
        let home = Int(truncatingIfNeeded: slots[Int(table[next]) - 1].address.hash) & mask
        if (next - home) & mask >= (next - hole) & mask {
          table[hole] = table[next]
          hole = next
        }
        next = (next + 1) & mask
      }
      table[hole] = 0
    }

    /// Evicts one value; there must be one.
    mutating func evictOne() {
      while true {
        if hand >= slots.count { hand = 0 }
        if slots[hand].wasUsed {
          slots[hand].wasUsed = false
          hand += 1
          continue
        }
        removeFromTable(at: find(slots[hand].address))
        bytes -= slots[hand].bytes
        if hand < slots.count - 1 {
          table[find(slots[slots.count - 1].address)] = UInt32(hand + 1)
          slots.swapAt(hand, slots.count - 1)
        }
        slots.removeLast()
        // The last slot, with the newest value, was moved here: it is looked at one round later.
        hand += 1
        return
      }
    }
  }

  private let state: Lock<State>

  /// - Parameter limitBytes: most bytes held; 0 keeps nothing.
  package init(limitBytes: Int) { state = Lock(State(limit: limitBytes)) }

  package var bytes: Int { state.withLock { $0.bytes } }

  /// Changes the most bytes held, and evicts values down to that.
  func setLimit(_ bytes: Int) {
    state.withLock { state in
      state.limit = bytes
      while state.bytes > bytes { state.evictOne() }
    }
  }

  package func value(for address: Address) -> Value? {
    state.withLock { state in
      guard !state.table.isEmpty else { return nil }
      let number = state.table[state.find(address)]
      guard number != 0 else { return nil }
      state.slots[Int(number) &- 1].wasUsed = true
      return state.slots.span[Int(number) &- 1].value
    }
  }

  /// The values of many addresses. A look-up waits for memory three times: table, slot, value. So
  /// the memory of all of them is prefetched first.
  /// - Parameter values: gets one for each address, nil where there is none.
  func values(for addresses: [Address], into values: inout [Value?]) {
    values.removeAll(keepingCapacity: true)
    state.withLock { state in
      guard !state.table.isEmpty else {
        return values.append(contentsOf: repeatElement(nil, count: addresses.count))
      }
      state.prefetch(addresses)
      for address in addresses {
        let number = Int(state.table[state.find(address)]) &- 1
        guard number >= 0 else {
          values.append(nil)
          continue
        }
        state.slots[number].wasUsed = true
        // An element of the array would be copied whole; a span lends it.
        values.append(state.slots.span[number].value)
      }
    }
  }

  /// Keeps a value; one larger than a quarter of the limit is not kept.
  /// - Parameter replaces: whether it replaces a value at its address; blocks never change.
  package func insert(_ value: Value, for address: Address, bytes: Int, replaces: Bool = false) {
    state.withLock { state in
      guard bytes <= state.limit / 4 else { return }
      state.growIfFull()
      let number = Int(state.table[state.find(address)]) &- 1
      if number >= 0 {
        guard replaces else { return }
        state.bytes += bytes - state.slots[number].bytes
        state.slots[number].value = value
        state.slots[number].bytes = bytes
        while state.bytes > state.limit { state.evictOne() }
        return
      }
      while state.bytes + bytes > state.limit { state.evictOne() }
      state.slots.append(Slot(address: address, value: value, bytes: bytes, wasUsed: false))
      state.table[state.find(address)] = UInt32(state.slots.count)
      state.bytes += bytes
    }
  }

  /// Forgets all values but those at some addresses.
  package func removeAll(except isKept: (Address) -> Bool = { _ in false }) {
    state.withLock { state in
      let kept = state.slots.filter { isKept($0.address) }
      state = State(limit: state.limit)
      guard !kept.isEmpty else { return }
      state.slots = kept
      state.bytes = kept.reduce(0) { $0 + $1.bytes }
      state.growIfFull()
    }
  }
}

extension ClockCache where Address == BlockAddress {
  /// Forgets the values of one of the stores that share the cache.
  package func removeAll(of store: UInt32) { removeAll { $0.store != store } }
}
