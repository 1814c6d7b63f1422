#if canImport(Darwin)
  public import Foundation
#else
  public import FoundationEssentials
#endif
public import Tidemark

extension Timestamp {
  /// The point in time of a date. A `Date` counts in floating point: today's dates are good to
  /// about a tenth of a microsecond. What no timestamp can say becomes the nearest one, and a date
  /// that is no number becomes 1970.
  public init(_ date: Date) {
    let seconds = date.timeIntervalSince1970
    guard !seconds.isNaN else {
      self.init(seconds: 0)
      return
    }
    // The largest whole number below 2^63 that a `Double` can say.
    let bound = 9_223_372_036_854_774_784.0
    guard abs(seconds) < bound else {
      self = seconds < 0 ? Timestamp(seconds: .min) : Timestamp(seconds: .max)
      return
    }
    let whole = seconds.rounded(.down)
    self.init(
      seconds: Int64(whole), nanoseconds: UInt32(((seconds - whole) * 1e9).rounded()))
  }

  /// The point in time as a date, good to about a tenth of a microsecond in our days.
  public var date: Date {
    Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1e9)
  }
}

extension Date {
  /// The date of a point in time; see ``Tidemark/Timestamp/date``.
  public init(_ timestamp: Timestamp) { self = timestamp.date }
}
