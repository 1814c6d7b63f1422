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
  /// - Parameter defaultAge: see ``CachePolicy/maxAgeMilliseconds``.
  func end(_ defaultAge: Int64) -> Int64 {
    if maxAge == Self.staleMark { return validated.milliseconds }
    let age = maxAge.map { Int64($0) * 1000 } ?? defaultAge
    return validated.milliseconds.addingClamped(max(0, age))
  }

  /// Whether the value is valid at a time.
  /// - Parameter defaultAge: see ``CachePolicy/maxAgeMilliseconds``.
  func isValid(at now: Timestamp, defaultAge: Int64) -> Bool {
    maxAge != Self.staleMark
      && now.milliseconds.isCovered(from: validated.milliseconds, until: end(defaultAge))
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
    // What stands above is the hot cache's.
    let age = note.second & 0xffff_ffff_ffff
    maxAge = age == 0 ? nil : UInt32(truncatingIfNeeded: age - 1)
  }
}

extension CachePolicy {
  /// The validity of entries that say none; a cache works it out once, since that takes long.
  var maxAgeMilliseconds: Int64 { Int64(clamping: maxAge.wholeMilliseconds) }
}
