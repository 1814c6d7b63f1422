/// The entries of a window that stay, with their values.
struct Survivors {
  struct Item {
    var front: DecodedFront
    var head: EntryHead
    /// Where its value begins in `values`.
    var valueStart: Int
    var created: UInt64
    /// Whether no read of the newest state needs it.
    var isHistory: Bool
  }

  /// The outcome of a window.
  struct Part: Sendable {
    var droppedEntries = 0
    var droppedTombstones = 0
    /// The highest tombstone that was dropped.
    var droppedThrough: UInt64 = 0
    /// Bytes of what stays though something newer has replaced it.
    var superseded = 0
    /// Whether an entry that stays says now when its key was created, which those said that go.
    var tellsCreation = false
    /// The segment that was written; nil where nothing stays.
    var row: Manifest.Segment?
  }

  var part = Part()
  private(set) var items: [Item] = []
  /// All values, one behind the other.
  var values: [UInt8] = []
  var latestTime: Timestamp?
  var latestCommitTime: UInt64 = 0

  /// Takes an entry, whose value is appended to `values` next.
  mutating func add(
    _ head: EntryHead, of front: DecodedFront, created: UInt64, isSuperseded: Bool,
    isTouched: Bool
  ) {
    items.append(
      Item(
        front: front, head: head, valueStart: values.count, created: created,
        isHistory: isSuperseded && !isTouched))
    if created != head.created { part.tellsCreation = true }
    if isSuperseded { part.superseded += head.keyLength + head.valueLength + 16 }
  }

  /// Lets go of entries by number; their values stay.
  mutating func remove(_ numbers: Set<Int>) {
    guard !numbers.isEmpty else { return }
    items = items.enumerated().filter { !numbers.contains($0.offset) }.map(\.element)
  }

  /// The numbers of the entries by key, those of a key by sequence.
  func sorted() -> [UInt32] {
    var numbers = Array(0..<UInt32(items.count))
    KeySorter(self).sort(&numbers)
    // The entries of a key came in order of sequence, unless a segment was written otherwise.
    if numbers.indices.dropFirst().contains(where: { isBehind(numbers[$0 - 1], numbers[$0]) }) {
      numbers.sort { a, b in
        let (a, b) = (items[Int(a)], items[Int(b)])
        let order = a.front.key(of: a.head).compare(to: b.front.key(of: b.head))
        return order != 0 ? order < 0 : a.head.sequence < b.head.sequence
      }
    }
    return numbers
  }

  /// Whether both have one key and the first the higher sequence.
  private func isBehind(_ a: UInt32, _ b: UInt32) -> Bool {
    let (a, b) = (items[Int(a)], items[Int(b)])
    guard a.head.sequence > b.head.sequence, a.head.keyLength == b.head.keyLength else {
      return false
    }
    return a.front.key(of: a.head).isEqual(to: b.front.key(of: b.head))
  }
}

extension Survivors: NumberedKeys {
  func keyLength(_ number: Int) -> Int { items[number].head.keyLength }

  func keyWord(_ number: Int, at depth: Int) -> UInt64 {
    let front = items[number].front
    return front.key(of: items[number].head).bigEndianWord(at: depth)
  }
}
