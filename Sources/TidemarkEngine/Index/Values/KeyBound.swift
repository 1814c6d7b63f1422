/// One end of a range of keys in byte order.
package enum KeyBound: Sendable, Hashable {
  /// Before the first key.
  case start
  /// After the last key.
  case end
  /// The key belongs to the range.
  case including([UInt8])
  /// The key does not belong to the range.
  case excluding([UInt8])

  /// The end of the range of all keys that begin with `prefix`.
  package static func afterPrefix(_ prefix: [UInt8]) -> KeyBound {
    // A byte 0xff has no successor, so the byte before it is raised instead.
    var next = prefix
    while let last = next.popLast() { if last < 0xff { return .excluding(next + [last + 1]) } }
    return .end
  }

  /// The bound as a place between keys.
  /// - Parameter isLower: whether a range begins at the bound; else a range ends there.
  func cut(isLower: Bool) -> KeyCut {
    switch self {
    case .start: KeyCut(key: [], place: .beforeAll)
    case .end: KeyCut(key: [], place: .afterAll)
    case .including(let key): KeyCut(key: key, place: isLower ? .before : .after)
    case .excluding(let key): KeyCut(key: key, place: isLower ? .after : .before)
    }
  }
}

/// A place between two keys: directly before or after `key`, whether or not that exists.
struct KeyCut {
  enum Place { case beforeAll, before, after, afterAll }

  var key: [UInt8]
  var place: Place

  /// Whether this place lies before the one directly before `other`; false where both are the same.
  func lies(before other: [UInt8]) -> Bool {
    switch place {
    case .beforeAll: true
    case .afterAll: false
    case .before, .after: key.lexicographicallyPrecedes(other)
    }
  }

  /// Whether this place lies behind the one directly before `other`; false where both are the same.
  func lies(behind other: [UInt8]) -> Bool { !precedes(other.rawSpan) }

  /// Whether the key `other` lies behind this place.
  @inline(__always)
  func precedes(_ other: RawSpan) -> Bool { isBefore(order: other.compare(to: key.rawSpan)) }

  /// Whether a key lies behind this place.
  /// - Parameter order: that key's ``RawSpan/compare(to:)`` with `key`; 0 where both are equal.
  @inline(__always)
  func isBefore(order: Int) -> Bool {
    switch place {
    case .beforeAll: true
    case .afterAll: false
    case .before: order >= 0
    case .after: order > 0
    }
  }
}
