/// A queue of entries in a ring of words: appended at the tail, removed at the head.
///
/// It does the arithmetic only; ``HotCacheShard`` owns the words. An entry never crosses the end of
/// the ring: words that are left over there are a gap, which the shard marks, and later removes as
/// it does an entry.
struct HotCacheRing: Sendable {
  /// Where an appended entry goes, and where a gap begins, up to the ring's end, if the entry did
  /// not fit in there.
  typealias Place = (position: Int, gap: Int?)

  let capacity: Int
  /// Where the oldest entry or gap begins, unless the ring is empty.
  private(set) var head = 0
  private var tail = 0
  /// Words of entries and gaps.
  private(set) var used = 0
  /// Words that were ever written, all at the front: they have memory.
  private(set) var touched = 0

  init(capacity: Int) { self.capacity = capacity }

  func hasRoom(for words: Int) -> Bool {
    if used == 0 { return words <= capacity }
    if tail <= head { return words <= head - tail }
    return words <= capacity - tail || words <= head
  }

  /// Appends an entry.
  /// - Returns: nil when the head must be removed first.
  mutating func append(_ words: Int) -> Place? {
    guard hasRoom(for: words) else { return nil }
    if used == 0 { (head, tail) = (0, 0) }
    var place: Place = (position: tail, gap: nil)
    if words > capacity - tail {
      place = (position: 0, gap: tail)
      used += capacity - tail
      // The first word of a gap says how long it is.
      touched = max(touched, tail + 1)
    }
    tail = place.position + words
    touched = max(touched, tail)
    if tail == capacity { tail = 0 }
    used += words
    return place
  }

  /// Removes the oldest entry or gap.
  /// - Parameter words: its own count of words.
  mutating func removeHead(_ words: Int) {
    precondition(words > 0 && words <= used && words <= capacity - head)
    head += words
    if head == capacity { head = 0 }
    used -= words
  }
}
