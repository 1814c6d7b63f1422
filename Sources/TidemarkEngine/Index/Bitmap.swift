/// A set of small numbers, one bit each; grows as needed.
struct Bitmap {
  private var words: [UInt64] = []
  /// How many numbers are in it.
  private(set) var count = 0

  var memoryBytes: Int { words.count * 8 }

  /// Whether `number` is in it.
  @inline(__always)
  func contains(_ number: Int) -> Bool {
    let word = number >> 6
    return word < words.count && words[word] >> UInt64(number & 63) & 1 != 0
  }

  /// Puts `number` in.
  mutating func insert(_ number: Int) {
    let word = number >> 6
    if word >= words.count {
      reserve(max(word + 1, words.count * 2) << 6)
    }
    let bit: UInt64 = 1 << UInt64(number & 63)
    if words[word] & bit == 0 {
      words[word] |= bit
      count += 1
    }
  }

  /// Calls `body` with all numbers, ascending.
  func forEach<E: Error>(_ body: (Int) throws(E) -> Void) throws(E) {
    for index in words.indices {
      var rest = words[index]
      while rest != 0 {
        try body(index << 6 + rest.trailingZeroBitCount)
        rest &= rest - 1
      }
    }
  }

  /// Makes room for numbers below `bound` at once.
  mutating func reserve(_ bound: Int) {
    let needed = (bound + 63) >> 6
    if needed > words.count {
      words.append(contentsOf: repeatElement(0, count: needed - words.count))
    }
  }
}
