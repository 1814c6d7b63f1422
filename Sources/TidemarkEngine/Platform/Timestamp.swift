/// A point in time: seconds since 1970-01-01T00:00:00Z and nanoseconds within the second.
public struct Timestamp: Sendable, Hashable, Comparable, Codable {
  /// Whole seconds since 1970-01-01T00:00:00Z; negative for earlier times.
  public var seconds: Int64
  /// Nanoseconds within the second, 0 to 999,999,999.
  public var nanoseconds: UInt32

  /// Creates a point in time; nanoseconds above 999,999,999 become 999,999,999.
  public init(seconds: Int64, nanoseconds: UInt32 = 0) {
    self.seconds = seconds
    self.nanoseconds = min(nanoseconds, 999_999_999)
  }

  /// Milliseconds since 1970, rounded down; the nearest `Int64` where the number is out of range.
  public var milliseconds: Int64 {
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, over) = scaled.addingReportingOverflow(Int64(nanoseconds / 1_000_000))
    return over ? .max : sum
  }

  /// Creates the point in time that is this many milliseconds after 1970-01-01T00:00:00Z, or before
  /// it when negative.
  public init(milliseconds: Int64) {
    let seconds = milliseconds >= 0 ? milliseconds / 1000 : (milliseconds + 1) / 1000 - 1
    // The product of the least number of all, rounded down, is below what an integer holds.
    self.init(seconds: seconds, nanoseconds: UInt32(milliseconds &- seconds &* 1000) * 1_000_000)
  }

  /// Whether a point in time is earlier than another.
  public static func < (a: Timestamp, b: Timestamp) -> Bool {
    (a.seconds, a.nanoseconds) < (b.seconds, b.nanoseconds)
  }
}
