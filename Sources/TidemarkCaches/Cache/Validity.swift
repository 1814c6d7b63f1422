internal import TidemarkEngine

/// How long a cached value counts as valid, which has nothing to do with whether it is there.
struct Validity: Sendable, Hashable {
  /// Says that a value is not valid until somebody validates it again.
  static let staleMark = UInt32.max

  /// When the value was known to be right.
  var validated: Timestamp
  /// Seconds of validity; nil for the default.
  var maxAge: UInt32?

  /// When the value stops being valid, in milliseconds since 1970.
  func end(_ policy: CachePolicy) -> Int64 { end(policy.maxAgeMilliseconds) }

  /// The same with the age of the policy in milliseconds, which takes longer to find out.
  func end(_ defaultAge: Int64) -> Int64 {
    if maxAge == Self.staleMark { return validated.milliseconds }
    let age = maxAge.map { Int64($0) * 1000 } ?? defaultAge
    let (end, overflow) = validated.milliseconds.addingReportingOverflow(max(0, age))
    return overflow ? .max : end
  }

  /// Whether the value is valid at a time.
  ///
  /// A clock that was set back leaves values that were validated in the future. They count as
  /// valid for as long as a new one would, not until the clock has caught up.
  func isValid(at now: Timestamp, _ policy: CachePolicy) -> Bool {
    isValid(at: now, defaultAge: policy.maxAgeMilliseconds)
  }

  /// The same with the age of the policy in milliseconds, which takes longer to find out.
  func isValid(at now: Timestamp, defaultAge: Int64) -> Bool {
    guard maxAge != Self.staleMark else { return false }
    let end = end(defaultAge)
    guard now.milliseconds < end else { return false }
    let age = end.subtractingReportingOverflow(validated.milliseconds)
    let (latest, overflow) = now.milliseconds.addingReportingOverflow(
      age.overflow ? .max : age.partialValue)
    return overflow || validated.milliseconds <= latest
  }
}

extension Validity {
  /// The same as what the hot cache keeps with the value.
  var note: HotNote {
    HotNote(
      first: UInt64(bitPattern: validated.milliseconds), second: maxAge.map { UInt64($0) + 1 } ?? 0)
  }

  init(_ note: HotNote) {
    validated = Timestamp(milliseconds: Int64(bitPattern: note.first))
    maxAge = note.second == 0 ? nil : UInt32(truncatingIfNeeded: note.second - 1)
  }
}

extension CachePolicy {
  var maxAgeMilliseconds: Int64 { Int64(clamping: maxAge.wholeMilliseconds) }
}
