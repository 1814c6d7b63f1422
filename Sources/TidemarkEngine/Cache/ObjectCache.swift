/// Decoded objects of a store's collections, whatever their types.
///
/// An object is current while its entry is the newest of its key. To ask the index is slow: so a
/// row has the key's *epoch*, a counter of the hot cache that each write of the key raises, from
/// before the look-up; with the same epoch it is current. The *generation* counts how often
/// everything was forgotten: rows of former generations are never returned.
package final class ObjectCache: Sendable {
  package typealias Box = any AnyObject & Sendable

  struct Address: CacheAddress {
    var hash: UInt64
    /// A second hash of the key: nobody finds two keys that agree in both.
    var check: UInt64
    /// The number of the `CollectionCore` that decoded it: another one may have another type.
    var owner: UInt32
  }

  /// A key, with epoch and generation from before the key was looked up.
  package struct Ticket: Sendable {
    var address: Address
    var epoch: UInt64
    var generation: UInt64
  }

  /// A decoded object and the entry that it was decoded from.
  package struct Row: Sendable {
    package var box: Box
    package var sequence: UInt64
    /// Whether the entry is a cached value.
    package var isCached: Bool
    /// The memory that the object takes, about.
    package var bytes: Int
    /// `.max` where the entry is not known to be the newest of the key.
    fileprivate var epoch: UInt64 = .max
    fileprivate var generation: UInt64 = 0

    package init(_ box: Box, at sequence: UInt64, isCached: Bool, bytes: Int) {
      (self.box, self.sequence, self.isCached, self.bytes) = (box, sequence, isCached, bytes)
    }
  }

  /// Parts by hash, so that readers on several threads seldom wait for each other.
  private static let parts = 8
  /// The number of keys whose memory is prefetched together.
  private static let together = 256
  /// Bytes of a row besides the object.
  private static let overhead = 96

  private let parts: [ClockCache<Address, Row>]
  private let generation = AtomicCounter()
  private let owners = Lock<UInt32>(0)

  init(limitBytes: Int) {
    parts = (0..<Self.parts).map { _ in ClockCache(limitBytes: limitBytes / Self.parts) }
  }

  var bytes: Int { parts.reduce(0) { $0 + $1.bytes } }

  func setLimit(_ bytes: Int) { for part in parts { part.setLimit(bytes / Self.parts) } }

  /// A number for one more collection.
  package func nextOwner() -> UInt32 {
    owners.withLock {
      $0 &+= 1
      return $0
    }
  }

  /// The ticket with which a key is asked for.
  /// - Parameter hotCache: the cache that counts writes of the key.
  func ticket(_ key: RawSpan, owner: UInt32, beside hotCache: HotCache) -> Ticket {
    let hash = KeyHash.hash(key, seed: hotCache.seed)
    let check = KeyHash.hash(key, seed: ~hotCache.seed)
    return ticket((hash, check), owner: owner, epoch: hotCache.isOn ? hotCache.epoch(hash) : nil)
  }

  /// - Parameters:
  ///   - hashes: two of the key.
  ///   - epoch: the hot cache's; nil where that is off: then no object counts as the newest.
  func ticket(_ hashes: (UInt64, UInt64), owner: UInt32, epoch: UInt64?) -> Ticket {
    Ticket(
      address: Address(hash: hashes.0, check: hashes.1, owner: owner), epoch: epoch ?? .max,
      generation: generation.value)
  }

  /// The object of a key's newest entry; nil where it is not here, or may be outdated.
  package func newest(_ ticket: Ticket) -> Row? {
    guard ticket.epoch < .max, let row = parts[part(ticket)].value(for: ticket.address),
      row.epoch == ticket.epoch, row.generation == ticket.generation
    else { return nil }
    return row
  }

  /// The same for many keys, in groups whose memory is prefetched together.
  package func newest(_ tickets: [Ticket]) -> [Row?] {
    var rows = [Row?](repeating: nil, count: tickets.count)
    var places = [[Int]](repeating: [], count: Self.parts)
    var found: [Row?] = []
    for first in stride(from: 0, to: tickets.count, by: Self.together) {
      for place in first..<min(first + Self.together, tickets.count)
      where tickets[place].epoch < .max {
        places[part(tickets[place])].append(place)
      }
      for part in places.indices where !places[part].isEmpty {
        parts[part].values(for: places[part].map { tickets[$0].address }, into: &found)
        for (place, row) in zip(places[part], found)
        where row?.epoch == tickets[place].epoch && row?.generation == tickets[place].generation {
          rows[place] = row
        }
        places[part].removeAll(keepingCapacity: true)
      }
    }
    return rows
  }

  /// The object of an entry, whether or not that is the newest of its key.
  package func row(_ ticket: Ticket, at sequence: UInt64) -> Row? {
    guard let row = parts[part(ticket)].value(for: ticket.address), row.sequence == sequence,
      row.generation == ticket.generation
    else { return nil }
    return row
  }

  /// Keeps an object, unless everything was forgotten since the ticket was given: after the store
  /// was read anew from the disk, its sequence may be that of another entry.
  /// - Parameter isNewest: whether its entry is the newest of the key, by a look-up since the
  ///   ticket was given.
  package func keep(_ row: Row, _ ticket: Ticket, isNewest: Bool) {
    guard ticket.generation == generation.value else { return }
    var row = row
    row.epoch = isNewest ? ticket.epoch : .max
    row.generation = ticket.generation
    let part = parts[part(ticket)]
    part.insert(row, for: ticket.address, bytes: row.bytes + Self.overhead, replaces: true)
    // `removeAll` raises the generation first, so one that has emptied this part already is seen.
    if ticket.generation != generation.value { part.removeAll() }
  }

  /// Makes all rows outdated; takes no lock.
  func invalidate() { generation.raise() }

  func removeAll() {
    invalidate()
    for part in parts { part.removeAll() }
  }

  private func part(_ ticket: Ticket) -> Int {
    Int(truncatingIfNeeded: ticket.address.hash &>> 56) & (Self.parts - 1)
  }
}
