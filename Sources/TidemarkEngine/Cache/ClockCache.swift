/// The name of something in a ``ClockCache``.
package protocol CacheAddress: Sendable, Equatable {
  /// For the cache's table.
  var hash: UInt64 { get }
}

/// A cache of what was decoded from the log, bounded in bytes.
///
/// Evicts by the clock (second chance) algorithm: F. J. Corbató, "A Paging Experiment with the
/// Multics System", 1968. A hit sets a bit and moves nothing. What a scan passes over once goes
/// before what was asked for again.
package final class ClockCache<Address: CacheAddress, Value: Sendable>: Sendable {
  private struct Slot {
    var address: Address
    var value: Value
    var bytes: Int
    var wasUsed: Bool
  }

  private struct State {
    /// Open addressing: numbers of slots, counted from 1; 0 is empty. A power of two, or none.
    var table: [UInt32] = []
    var slots: [Slot] = []
    var hand = 0
    var bytes = 0
    var limit: Int

    /// Where in the table an address stands, or would.
    func find(_ address: Address) -> Int {
      let mask = table.count &- 1
      var index = Int(truncatingIfNeeded: address.hash) & mask
      let slots = slots.span
      while table[index] != 0, slots[Int(table[index]) &- 1].address != address {
        index = (index &+ 1) & mask
      }
      return index
    }

    /// Brings closer what a look-up of these will meet.
    func prefetch(_ addresses: [Address]) {
      let mask = table.count &- 1
      // A span lends a value, where the array would retain it, and wait for what is to be fetched.
      let slots = slots.span
      // The sums keep the loads from being left out; none of a pass waits for another.
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

    /// Goes on with some of the slots only.
    mutating func keep(where isKept: (Slot) -> Bool) {
      let kept = slots.filter(isKept)
      self = State(limit: limit)
      guard !kept.isEmpty else { return }
      slots = kept
      bytes = kept.reduce(0) { $0 + $1.bytes }
      growIfFull()
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
        // The newest one, which may stand here now, has its turn when the hand has come round.
        hand += 1
        return
      }
    }
  }

  private let state: Lock<State>

  /// - Parameter limitBytes: most bytes held; 0 keeps nothing.
  package init(limitBytes: Int) { state = Lock(State(limit: limitBytes)) }

  package var bytes: Int { state.withLock { $0.bytes } }

  /// Changes how many bytes it may hold, and evicts what is more.
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

  /// The values of many addresses. Each look-up waits for memory three times, at places that have
  /// nothing to do with each other: so it is asked for them all, one step after the other.
  /// - Parameter values: gets one for each address, nil for what is not here.
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
        // A span lends the slot, where the array copies all of it.
        values.append(state.slots.span[number].value)
      }
    }
  }

  /// Keeps a value; one larger than a quarter of the limit is not kept.
  /// - Parameter replaces: whether it takes the place of another value at its address.
  package func insert(
    _ value: Value, for address: Address, bytes: Int, replaces: Bool = false
  ) {
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

  /// Forgets everything but what is at some of the addresses.
  package func removeAll(except isKept: (Address) -> Bool = { _ in false }) {
    state.withLock { $0.keep { isKept($0.address) } }
  }
}

extension ClockCache where Address == BlockAddress {
  /// Forgets what a store has in it.
  package func removeAll(of store: UInt32) { removeAll { $0.store != store } }
}
