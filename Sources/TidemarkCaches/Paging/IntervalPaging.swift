/// The way from views of the newest items, which begin anywhere, to intervals of ids that never
/// move.
///
/// A list whose ids only grow is cut at multiples of a size. An interval of which all ids have been
/// given out never changes again, so that it is fetched once; a view of the newest 20 is made of
/// two such intervals at most, of size 20, wherever it begins.
public struct IntervalPaging: Sendable, Hashable {
  /// How many ids an interval has; at least 1.
  public let size: Int64

  /// A cut of all ids.
  /// - Parameter size: how many ids an interval has; at least 1, else 1.
  public init(size: Int64) { self.size = max(1, size) }

  /// The interval that an id lies in. The last ones at both ends of the numbers may be shorter.
  public func interval(containing id: Int64) -> Range<Int64> {
    let remainder = id % size
    let offset = remainder < 0 ? remainder + size : remainder
    let (start, isBelow) = id.subtractingReportingOverflow(offset)
    let lower = isBelow ? Int64.min : start
    let (end, isAbove) = id.addingReportingOverflow(size - offset)
    return lower..<(isAbove ? Int64.max : end)
  }

  /// The intervals that hold the newest items of a list without gaps, the newest first.
  /// - Parameters:
  ///   - count: how many items are wanted.
  ///   - newest: the highest id that was given out.
  ///   - lowest: the lowest one.
  public func intervals(
    newest count: Int, through newest: Int64, from lowest: Int64 = 0
  ) -> [Range<Int64>] {
    guard count > 0, newest >= lowest else { return [] }
    let (end, isBelow) = newest.subtractingReportingOverflow(Int64(clamping: count) - 1)
    let last = isBelow ? lowest : max(end, lowest)
    var intervals = [interval(containing: newest)]
    while let interval = intervals.last, interval.lowerBound > last {
      intervals.append(self.interval(containing: interval.lowerBound - 1))
    }
    return intervals
  }

  /// Whether all ids of an interval have been given out, so that it never changes again.
  /// - Parameters:
  ///   - interval: the interval.
  ///   - newest: the highest id that was given out.
  public func isClosed(_ interval: Range<Int64>, newest: Int64) -> Bool {
    interval.upperBound - 1 <= newest
  }
}
