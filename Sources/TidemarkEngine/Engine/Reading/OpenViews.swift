/// The sequences that open views read at; under `reading`. There are as many as views: whoever
/// holds one holds its memory, too.
struct OpenViews {
  /// How many views each sequence has.
  private var counts: [UInt64: Int] = [:]

  var isEmpty: Bool { counts.isEmpty }

  /// The least sequence that a view needs.
  var least: UInt64? { counts.keys.min() }

  var sequences: [UInt64] { counts.keys.sorted() }

  mutating func pin(_ sequence: UInt64) { counts[sequence, default: 0] += 1 }

  mutating func unpin(_ sequence: UInt64) {
    guard let count = counts[sequence] else { return }
    counts[sequence] = count > 1 ? count - 1 : nil
  }
}
