/// Slot numbers of a memtable, each once, in the order of their keys.
///
/// Sorted chunks of at most 512 numbers, found by binary search. Numbers added since the last
/// ordered access wait in a tail, so that puts which no walk follows pay nothing for order;
/// `sortTail` merges them into the chunks. A value type: a merge keeps the copy it was given.
struct SortedSlots {
  static let chunkCapacity = 512
  /// Chunks are made this full where there is a choice, so that inserts do not split at once.
  private static let chunkFill = 448
  private static let smallestCleanup = 1024

  /// Each sorted, none empty, and the keys of one behind all keys of the one before.
  private(set) var chunks: [[UInt32]] = []
  private var tail: [UInt32] = []
  /// The length of the tail from which on ``appendMaybeAgain(_:)`` drops repetitions.
  private var cleanupAt = smallestCleanup
  /// How many numbers there are; repetitions count as long as they are in the tail.
  private(set) var count = 0

  var memoryBytes: Int { (count - tail.count) * 4 + chunks.count * 40 + tail.capacity * 4 }

  /// Whether nothing waits in the tail.
  var isSorted: Bool { tail.isEmpty }

  /// Adds a number that is not in here yet.
  @inline(__always)
  mutating func append(_ number: Int) {
    tail.append(UInt32(truncatingIfNeeded: number))
    count += 1
  }

  /// Adds numbers that are not in here yet.
  mutating func append(_ numbers: Range<Int>) {
    tail.reserveCapacity(tail.count + numbers.count)
    for number in numbers { append(number) }
  }

  /// Adds a number that may be in here already.
  mutating func appendMaybeAgain(_ number: Int) {
    append(number)
    guard tail.count >= cleanupAt else { return }
    // Repeated numbers go each time that the tail has doubled; keys are not compared for that.
    let before = tail.count
    tail.sort()
    Self.dropEqual(&tail)
    count -= before - tail.count
    cleanupAt = max(Self.smallestCleanup, 2 * tail.count)
  }

  /// Sorts the tail by keys and merges it into the chunks.
  mutating func sortTail(_ store: SlotStore) {
    guard !tail.isEmpty else { return }
    var sorted = tail
    tail = []
    cleanupAt = Self.smallestCleanup
    KeySorter(store).sort(&sorted)
    count -= sorted.count
    Self.dropEqual(&sorted)
    count += sorted.count
    if chunks.isEmpty {
      chunks = Self.pieces(sorted)
      return
    }
    // From the last chunk to the first: a chunk that splits moves only those behind it.
    var end = sorted.count
    while end > 0 {
      let chunk = chunkIndex(for: store.key(Int(sorted[end - 1])), store)
      var start = end - 1
      if chunk == 0 {
        start = 0
      } else {
        let first = Int(chunks[chunk][0])
        while start > 0, store.key(Int(sorted[start - 1])).compare(to: store.key(first)) >= 0 {
          start -= 1
        }
      }
      insert(sorted[start..<end], into: chunk, store)
      end = start
    }
  }

  /// Calls `body` with all numbers, in any order; some come more than once.
  func forEach(_ body: (Int) -> Void) {
    for chunk in chunks { for number in chunk { body(Int(number)) } }
    for number in tail { body(Int(number)) }
  }

  /// All numbers in the order of their keys, those of the tail, too.
  func sorted(_ store: SlotStore) -> [UInt32] {
    var copy = self
    copy.sortTail(store)
    var all: [UInt32] = []
    all.reserveCapacity(copy.count)
    for chunk in copy.chunks { all.append(contentsOf: chunk) }
    return all
  }

  /// The last chunk that begins at or before a key, or the first one.
  private func chunkIndex(for key: RawSpan, _ store: SlotStore) -> Int {
    (1..<chunks.count).partitioningIndex {
      key.compare(to: store.key(Int(chunks[$0][0]))) < 0
    } - 1
  }

  /// Merges sorted numbers that all belong to one chunk into it.
  private mutating func insert(_ new: ArraySlice<UInt32>, into chunk: Int, _ store: SlotStore) {
    let old = chunks[chunk]
    var merged: [UInt32] = []
    merged.reserveCapacity(old.count + new.count)
    var taken = 0
    for number in new {
      let key = store.key(Int(number))
      // With about as many new numbers as old, each lies close behind the one before.
      let low = old.partitioningIndex(near: taken) { key.compare(to: store.key(Int($0))) <= 0 }
      merged.append(contentsOf: old[taken..<low])
      taken = low
      // Equal keys are the same number, since a memtable holds every key once.
      if low < old.count, old[low] == number {
        count -= 1
      } else {
        merged.append(number)
      }
    }
    merged.append(contentsOf: old[taken...])
    if merged.count <= Self.chunkCapacity {
      chunks[chunk] = merged
    } else {
      chunks.replaceSubrange(chunk...chunk, with: Self.pieces(merged))
    }
  }

  /// Cuts sorted numbers into chunks of about the same size.
  private static func pieces(_ all: [UInt32]) -> [[UInt32]] {
    guard all.count > chunkCapacity else { return all.isEmpty ? [] : [all] }
    let number = (all.count + chunkFill - 1) / chunkFill
    return (0..<number).map { i in
      Array(all[(all.count * i / number)..<(all.count * (i + 1) / number)])
    }
  }

  private static func dropEqual(_ numbers: inout [UInt32]) {
    guard numbers.count > 1 else { return }
    var kept = 1
    for i in 1..<numbers.count where numbers[i] != numbers[kept - 1] {
      numbers[kept] = numbers[i]
      kept += 1
    }
    numbers.removeLast(numbers.count - kept)
  }

  /// Whether the order holds; for tests.
  func _checkInvariants(_ store: SlotStore) -> Bool {
    guard count == tail.count + chunks.reduce(0, { $0 + $1.count }) else { return false }
    guard chunks.allSatisfy({ !$0.isEmpty && $0.count <= Self.chunkCapacity }) else { return false }
    let all = chunks.flatMap(\.self)
    return all.indices.dropFirst().allSatisfy {
      store.key(Int(all[$0 - 1])).compare(to: store.key(Int(all[$0]))) < 0
    }
  }
}
