extension Int64 {
  /// Whether what was said at a time holds at this one, both in milliseconds since 1970.
  ///
  /// A clock that was set back leaves what was said in the future. That holds for as long as if it
  /// were said now, not until the clock has caught up.
  func isCovered(from start: Int64, until end: Int64) -> Bool {
    guard self < end else { return false }
    let (age, overflow) = end.subtractingReportingOverflow(start)
    return start <= addingClamped(overflow ? .max : age)
  }
}

extension FixedWidthInteger {
  /// The sum with a number that is not negative; the largest number where that is too large.
  func addingClamped(_ other: Self) -> Self {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}
