#if canImport(Darwin)
  public import Foundation
#else
  public import FoundationEssentials
#endif
public import Tidemark

extension Timestamp {
  /// Creates the point in time of a date. A `Date` is a floating-point number, so today's dates are
  /// exact to about a tenth of a microsecond. A date outside the range becomes the nearest
  /// timestamp; a date that is not a number becomes 1970.
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

  /// This point in time as a `Date`, exact to about a tenth of a microsecond for today's dates.
  public var date: Date {
    Date(timeIntervalSince1970: Double(seconds) + Double(nanoseconds) / 1e9)
  }
}

extension Date {
  /// Creates a date from a point in time, exact to about a tenth of a microsecond for today's
  /// dates.
  public init(_ timestamp: Timestamp) { self = timestamp.date }
}
