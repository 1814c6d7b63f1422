/// Narrows the search for a number in a packed column (see ``PackedColumns``), whose numbers
/// ascend: cuts them into ranges of equal length and knows for each how many groups begin below it.
final class GroupDirectory: Sendable {
  private let base: UInt64
  private let shift: UInt64
  /// For each range how many groups begin below the range; at the end, how many there are.
  private let counts: [UInt32]

  /// - Parameter firsts: the first number of each group, ascending; at least one.
  init(_ firsts: [UInt64]) {
    base = firsts[0]
    let span = max(firsts[firsts.count - 1], base) - base
    // About two ranges a group.
    let wanted = span / UInt64(2 * firsts.count)
    shift = wanted == 0 ? 0 : UInt64(64 - wanted.leadingZeroBitCount)
    var counts: [UInt32] = []
    let ranges = Int(span >> shift) + 1
    counts.reserveCapacity(ranges + 1)
    var group = 0
    for range in 0..<ranges {
      let begin = base + UInt64(range) << shift
      while group < firsts.count, firsts[group] < begin { group += 1 }
      counts.append(UInt32(group))
    }
    counts.append(UInt32(firsts.count))
    self.counts = counts
  }

  /// About how many bytes of memory the directory takes.
  var memoryBytes: Int { counts.count * 4 }

  /// Between which groups to look for a number.
  /// - Returns: the last group that is known to begin below the number, and the first that is known
  ///   not to, which may be the end; nil when no group begins below the number.
  func bounds(below number: UInt64) -> (low: Int, high: Int)? {
    guard number > base else { return nil }
    let range = Int(min((number - base) >> shift, UInt64(counts.count - 2)))
    return (max(Int(counts[range]) - 1, 0), Int(counts[range + 1]))
  }
}
