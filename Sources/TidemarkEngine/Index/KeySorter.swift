/// Keys that have numbers, as ``KeySorter`` reads them.
protocol NumberedKeys {
  func keyLength(_ number: Int) -> Int
  /// Eight bytes of a key from an offset (`depth`) on, big-endian, zeros behind the key's end.
  func keyWord(_ number: Int, at depth: Int) -> UInt64
}

extension SlotStore: NumberedKeys {
  func keyLength(_ number: Int) -> Int { key(number).byteCount }
  func keyWord(_ number: Int, at depth: Int) -> UInt64 { key(number).bigEndianWord(at: depth) }
}

/// Sorts the numbers of keys by the keys in byte order, and numbers of equal keys ascending.
///
/// Compares eight key bytes at a time as one word, behind the prefix that all keys share. Numbers
/// whose words are equal are a group, which is sorted by the next eight bytes. A form of multikey
/// sorting: Bentley and Sedgewick, "Fast algorithms for sorting and searching strings", 1997.
struct KeySorter<Keys: NumberedKeys> {
  private typealias Item = (word: UInt64, number: UInt32)

  private let keys: Keys

  init(_ keys: Keys) { self.keys = keys }

  func sort(_ numbers: inout [UInt32]) {
    guard numbers.count > 1 else { return }
    let depth = commonPrefix(numbers)
    var items = numbers.map { (word: keys.keyWord(Int($0), at: depth), number: $0) }
    // Groups still to be sorted by the bytes from a depth on. A list and no recursion: whoever
    // chooses the keys could make it as deep as a key has words.
    var pending = [(range: 0..<items.count, depth: depth)]
    while let (range, depth) = pending.popLast() {
      items[range].sort { $0.word < $1.word }
      var start = range.lowerBound
      while start < range.upperBound {
        var end = start + 1
        while end < range.upperBound, items[end].word == items[start].word { end += 1 }
        if end - start > 1 {
          let rest = separateEnded(&items, start..<end, depth + 8)
          if rest.count > 1 { pending.append((rest, depth + 8)) }
        }
        start = end
      }
    }
    for i in numbers.indices { numbers[i] = items[i].number }
  }

  /// Moves the keys that end at or before `depth` to the front, the shortest first: their words
  /// cannot tell an end from zero bytes. Returns the range of the others, with their next words.
  private func separateEnded(
    _ items: inout [Item], _ range: Range<Int>, _ depth: Int
  ) -> Range<Int> {
    var first = range.lowerBound
    for i in range {
      let count = keys.keyLength(Int(items[i].number))
      if count <= depth {
        items[i].word = UInt64(count)
        items.swapAt(first, i)
        first += 1
      } else {
        items[i].word = keys.keyWord(Int(items[i].number), at: depth)
      }
    }
    items[range.lowerBound..<first].sort { ($0.word, $0.number) < ($1.word, $1.number) }
    return first..<range.upperBound
  }

  /// How many bytes all keys have in common at the front.
  private func commonPrefix(_ numbers: [UInt32]) -> Int {
    let first = Int(numbers[0])
    var common = keys.keyLength(first)
    for number in numbers {
      let length = min(common, keys.keyLength(Int(number)))
      var depth = 0
      while depth < length {
        let differing = keys.keyWord(first, at: depth) ^ keys.keyWord(Int(number), at: depth)
        if differing != 0 {
          depth += differing.leadingZeroBitCount >> 3
          break
        }
        depth += 8
      }
      common = min(length, depth)
      if common == 0 { break }
    }
    return common
  }
}
