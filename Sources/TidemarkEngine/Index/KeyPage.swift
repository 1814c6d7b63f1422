/// One page of a walk over the index: keys in the order of the walk, each with its newest slot.
/// Filled again and again: once it has its full size, nothing is allocated per key.
package struct KeyPage: Sendable {
  struct Entry {
    var offset: Int
    var count: Int
    var slot: Slot
  }

  private var bytes: [UInt8] = []
  private var entries: [Entry] = []
  /// The key at which the walk stopped, if that is behind the last key of the page; else empty.
  private var lastSeen: [UInt8] = []

  package init() {}

  /// A page with room for so many keys of common length.
  init(room: Int) {
    entries.reserveCapacity(room)
    bytes.reserveCapacity(room * 24)
  }

  package var count: Int { entries.count }

  package var isEmpty: Bool { entries.isEmpty }

  /// The length of all keys together.
  var byteCount: Int { bytes.count }

  package func slot(at position: Int) -> Slot { entries[position].slot }

  @_lifetime(borrow self)
  package func key(at position: Int) -> RawSpan {
    let entry = entries[position]
    return bytes.rawSpan.extracting(entry.offset..<(entry.offset + entry.count))
  }

  /// The bound from which the next page begins; only if the walk has not reached its end. It is the
  /// page's last key, or one that did not match: a page also ends after many such keys, so that the
  /// lock is not held for long.
  package var resumption: KeyBound {
    guard lastSeen.isEmpty, let last = entries.last else { return .excluding(lastSeen) }
    return .excluding(Array(bytes[last.offset..<(last.offset + last.count)]))
  }

  /// Forgets all keys and keeps the memory.
  mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
    lastSeen.removeAll(keepingCapacity: true)
  }

  @inline(__always)
  mutating func append(_ key: RawSpan, _ slot: Slot) {
    entries.append(Entry(offset: bytes.count, count: key.byteCount, slot: slot))
    bytes.append(copying: key)
  }

  /// Makes the next page begin behind a key that did not match.
  mutating func markSeen(_ key: RawSpan) {
    lastSeen.removeAll(keepingCapacity: true)
    lastSeen.append(copying: key)
  }
}
