extension Duration {
  /// Whole seconds, rounded up, so that nothing ends before its time; 0 for a negative duration.
  package var wholeSeconds: UInt64 { whole(perSecond: 1) }

  /// Whole milliseconds, rounded up; 0 for a negative duration.
  package var wholeMilliseconds: UInt64 { whole(perSecond: 1000) }

  private func whole(perSecond count: Int64) -> UInt64 {
    guard self > .zero else { return 0 }
    // A longer duration has more seconds than the 64 bits of `components` can hold.
    guard self < .seconds(Int64.max) else { return .max }
    let (seconds, attoseconds) = components
    let unit = 1_000_000_000_000_000_000 / count
    let rest = UInt64(attoseconds / unit) + (attoseconds % unit > 0 ? 1 : 0)
    let (scaled, isTooMuch) = UInt64(seconds).multipliedReportingOverflow(by: UInt64(count))
    let (sum, isOver) = scaled.addingReportingOverflow(rest)
    return isTooMuch || isOver ? .max : sum
  }
}
