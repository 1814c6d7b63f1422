/// The sequences that open views pin: compaction keeps the state at the least of them and all that
/// follows. A part of ``ReadState``, under the readers' lock; each view unpins when it is freed.
struct OpenViews {
  /// How many views pin each sequence.
  private var counts: [UInt64: Int] = [:]

  var sequences: [UInt64] { counts.keys.sorted() }
  mutating func pin(_ sequence: UInt64) { counts[sequence, default: 0] += 1 }

  mutating func unpin(_ sequence: UInt64) {
    guard let count = counts[sequence] else { return }
    counts[sequence] = count > 1 ? count - 1 : nil
  }
}
