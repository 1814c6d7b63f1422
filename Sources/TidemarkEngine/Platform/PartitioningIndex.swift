extension RandomAccessCollection where Indices == Range<Int> {
  /// The first index from which on a condition holds, by binary search; the end where none does.
  ///
  /// To search what is no collection, search its numbers: `(0..<count).partitioningIndex`.
  /// - Parameter holds: false for a first part of the elements, and true for the rest.
  @inlinable @inline(__always)
  package func partitioningIndex<Failure: Error>(
    _ holds: (Element) throws(Failure) -> Bool
  ) throws(Failure) -> Int {
    var low = startIndex
    var high = endIndex
    while low < high {
      let middle = (low + high) / 2
      if try holds(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// The same by galloping from `start`, which is mostly close to the answer: steps double, then a
  /// binary search lies between the last two.
  /// - Parameter start: at or before the answer; indices below it are never looked at.
  @inlinable @inline(__always)
  package func partitioningIndex(near start: Int, _ holds: (Element) -> Bool) -> Int {
    var low = start
    var step = 1
    while low + step < endIndex, !holds(self[low + step]) {
      low += step
      step *= 2
    }
    let high = Swift.max(low, Swift.min(endIndex, low + step + 1))
    return (low..<high).partitioningIndex { holds(self[$0]) }
  }
}
