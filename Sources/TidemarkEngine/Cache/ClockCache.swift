/// A small cache bounded in bytes, for decoded blocks and heads.
///
/// Evicts by the clock (second chance) algorithm: F. J. Corbató, "A Paging Experiment with the
/// Multics System", 1968. A hit sets a bit and moves nothing.
package final class ClockCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Slot {
    var key: Key
    var value: Value
    var bytes: Int
    var wasUsed: Bool
  }

  private struct State {
    var index: [Key: Int] = [:]
    var slots: [Slot] = []
    var hand = 0
    var bytes = 0
  }

  private let state = Lock(State())
  private let limitBytes: Int

  /// - Parameter limitBytes: most bytes held; 0 keeps nothing.
  package init(limitBytes: Int) { self.limitBytes = limitBytes }

  /// Bytes held.
  package var bytes: Int { state.withLock { $0.bytes } }

  package func value(for key: Key) -> Value? {
    state.withLock { state in
      guard let position = state.index[key] else { return nil }
      state.slots[position].wasUsed = true
      return state.slots[position].value
    }
  }

  /// Keeps a value; one larger than a quarter of the limit is not kept.
  package func insert(_ value: Value, for key: Key, bytes: Int) {
    guard bytes <= limitBytes / 4 else { return }
    state.withLock { state in
      guard state.index[key] == nil else { return }
      while state.bytes + bytes > limitBytes, !state.slots.isEmpty { evictOne(&state) }
      state.index[key] = state.slots.count
      state.slots.append(Slot(key: key, value: value, bytes: bytes, wasUsed: false))
      state.bytes += bytes
    }
  }

  package func removeAll() { state.withLock { $0 = State() } }

  private func evictOne(_ state: inout State) {
    while true {
      if state.hand >= state.slots.count { state.hand = 0 }
      if state.slots[state.hand].wasUsed {
        state.slots[state.hand].wasUsed = false
        state.hand += 1
        continue
      }
      let gone = state.slots[state.hand]
      state.index[gone.key] = nil
      state.bytes -= gone.bytes
      let last = state.slots.removeLast()
      if state.hand < state.slots.count {
        state.slots[state.hand] = last
        state.index[last.key] = state.hand
      }
      return
    }
  }
}
