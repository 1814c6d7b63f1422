/// A queue of entries in a ring of words: appended at the tail, taken from the head.
///
/// It does the sums only; the words are elsewhere. An entry never crosses the end of the ring:
/// what is left over there becomes a gap, which its user marks and takes out like an entry.
struct HotCacheRing: Sendable {
  /// A place for an entry.
  struct Place {
    var position: Int
    /// Where a gap begins that the entry leaves behind; its words reach to the ring's end.
    var gap: Int?
  }

  /// Words in the ring.
  let capacity: Int
  /// Where the oldest entry or gap begins, unless the ring is empty.
  private(set) var head = 0
  private var tail = 0
  /// Words of entries and gaps.
  private(set) var used = 0
  /// Words that were ever touched, all at the front.
  private(set) var touched = 0

  init(capacity: Int) { self.capacity = capacity }

  /// Whether an entry fits in now.
  func hasRoom(for words: Int) -> Bool {
    if used == 0 { return words <= capacity }
    if tail <= head { return words <= head - tail }
    return words <= capacity - tail || words <= head
  }

  /// Appends an entry.
  /// - Returns: nil when the head must be taken out first.
  mutating func append(_ words: Int) -> Place? {
    guard hasRoom(for: words) else { return nil }
    if used == 0 {
      head = 0
      tail = 0
    }
    var place = Place(position: tail, gap: nil)
    if words > capacity - tail {
      place = Place(position: 0, gap: tail)
      used += capacity - tail
      touched = max(touched, tail + 1)
    }
    tail = place.position + words
    touched = max(touched, tail)
    if tail == capacity { tail = 0 }
    used += words
    return place
  }

  /// Takes the oldest entry or gap out.
  mutating func removeHead(_ words: Int) {
    precondition(words > 0 && words <= used && words <= capacity - head)
    head += words
    if head == capacity { head = 0 }
    used -= words
  }
}
