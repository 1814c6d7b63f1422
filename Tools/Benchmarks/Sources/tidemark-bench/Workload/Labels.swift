/// The labels of the store: about a thousand documents carry each.
struct Labels: Sendable {
  let count: Int
  /// The labels' text.
  let texts: [[UInt8]]

  static let documents = 1000

  init(n: Int) {
    count = max(10, n / Self.documents)
    texts = (0..<count).map { number in
      let digits = String(number)
      let zeros = String(repeating: "0", count: max(0, 6 - digits.count))
      return Array("group-\(zeros)\(digits)".utf8)
    }
  }

  /// The number of a record's label.
  @inline(__always)
  func number(_ index: UInt32) -> Int { Int(mixed(UInt64(index) ^ 0x5a5a) % UInt64(count)) }

  /// How many of the records carry each label.
  func sizes(n: Int) -> [Int] {
    var sizes = [Int](repeating: 0, count: count)
    for index in 0..<n { sizes[number(UInt32(index))] += 1 }
    return sizes
  }
}
