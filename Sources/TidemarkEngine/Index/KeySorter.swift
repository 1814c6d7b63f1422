/// Sorts slot numbers by their keys.
///
/// Compares eight key bytes at a time as one number, after what all keys have in common;
/// where those are equal the group is sorted by the next eight. A form of multikey sorting:
/// Bentley and Sedgewick, "Fast algorithms for sorting and searching strings", 1997.
struct KeySorter {
  private struct Item {
    /// Eight bytes of the key in big-endian order, zeros behind its end.
    var word: UInt64
    var number: UInt32
  }

  private let store: SlotStore

  init(_ store: SlotStore) { self.store = store }

  /// Sorts numbers; equal ones stay beside each other.
  func sort(_ numbers: inout [UInt32]) {
    guard numbers.count > 1 else { return }
    let depth = commonPrefix(numbers)
    var items = numbers.map { Item(word: word(Int($0), depth), number: $0) }
    // Ranges still to be split by the bytes from a depth on; never recursive, since the depth
    // of keys is up to those who choose them.
    var pending = [(range: 0..<items.count, depth: depth)]
    while let (range, depth) = pending.popLast() {
      items[range].sort { $0.word < $1.word }
      var start = range.lowerBound
      while start < range.upperBound {
        var end = start + 1
        while end < range.upperBound, items[end].word == items[start].word { end += 1 }
        if end - start > 1 {
          let rest = settleEnded(&items, start..<end, depth + 8)
          if rest.count > 1 { pending.append((rest, depth + 8)) }
        }
        start = end
      }
    }
    for i in numbers.indices { numbers[i] = items[i].number }
  }

  /// Moves the keys that end at or before `depth` to the front, the shortest first, and makes
  /// the words of the rest the next ones.
  private func settleEnded(
    _ items: inout [Item], _ range: Range<Int>, _ depth: Int
  ) -> Range<Int> {
    var first = range.lowerBound
    for i in range {
      let count = store.key(Int(items[i].number)).byteCount
      if count <= depth {
        items[i].word = UInt64(count)
        items.swapAt(first, i)
        first += 1
      } else {
        items[i].word = word(Int(items[i].number), depth)
      }
    }
    items[range.lowerBound..<first].sort { $0.word < $1.word }
    return first..<range.upperBound
  }

  private func commonPrefix(_ numbers: [UInt32]) -> Int {
    let first = store.key(Int(numbers[0]))
    var common = first.byteCount
    for number in numbers {
      common = min(common, first.commonPrefix(with: store.key(Int(number))))
      if common == 0 { break }
    }
    return common
  }

  private func word(_ number: Int, _ depth: Int) -> UInt64 {
    store.key(number).bigEndianWord(at: depth)
  }
}
