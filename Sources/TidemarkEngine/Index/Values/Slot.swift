/// The index's knowledge of a key: which entry is its newest, and never where in the log that lies.
package struct Slot: Sendable, Hashable {
  /// The largest sequence that a slot can hold; 48 bits are stored.
  package static let maxSequence: UInt64 = (1 << 48) - 1

  /// The sequence of the key's newest entry.
  package var sequence: UInt64
  /// The interned set of the key's labels; 0 is the empty set. See ``LabelTable``.
  package var labelSet: UInt32
  /// About how many bytes the entry takes, or that the key is deleted.
  package var size: SizeClass

  package init(sequence: UInt64, labelSet: UInt32, size: SizeClass) {
    self.sequence = sequence
    self.labelSet = labelSet
    self.size = size
  }

  /// Whether the newest entry is a delete.
  package var isDeleted: Bool { size.isDeleted }

  /// The set of labels that count: a deleted key carries none.
  var effectiveLabelSet: UInt32 { size.isDeleted ? 0 : labelSet }
}

/// The size of an entry, roughly, and what else reads know of the entry without a look at the log.
///
/// A touch is an entry that renews the validity of an older put, and has no value. A cached value
/// is a copy of what a server has, not the user's own; an eviction is an entry that gives it up.
/// ```
/// bit 7     the newest entry is a touch, so that the value lies at an older sequence
/// bit 6     the value is cached, or was before an eviction
/// bits 5-0  the size class, three an octave from 32 bytes on; 0 means deleted or evicted
/// ```
/// Of a cached value bit 5 says that older entries of the key may be the user's own, and bits 4-0
/// hold half of the size class: such sizes are within a third, all others within a sixth.
package struct SizeClass: RawRepresentable, Sendable, Hashable {
  package var rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The class of a deleted key.
  package static let deleted = SizeClass(rawValue: 0)
  /// The class of a key whose cached value was evicted and which the user never wrote: it hides
  /// no entry of the user's, so that the index forgets the key once no open view needs it.
  package static let evicted = SizeClass(rawValue: 0x40)
  private static let touchedBit: UInt8 = 0x80
  private static let cachedBit: UInt8 = 0x40
  private static let overOwnedBit: UInt8 = 0x20
  private static let highest = 63
  private static let leastOctave = 5

  /// The class of an entry of `bytes` bytes; anything from 64 MiB on shares the last one.
  package init(bytes: Int) {
    let value = UInt64(min(max(bytes, 1 << Self.leastOctave), 1 << 40))
    let octave = 63 - value.leadingZeroBitCount
    // Even steps within an octave need no roots.
    let third = Int((3 * value) >> UInt64(octave)) - 3
    let code = 1 + 3 * (octave - Self.leastOctave) + third
    rawValue = UInt8(min(code, Self.highest))
  }

  /// The same entry as a cached value.
  /// - Parameter former: the key's newest entry before it; nil where nobody has written the key.
  package func cached(over former: SizeClass?) -> SizeClass {
    // An entry that is not cached is the user's, also a delete; a cached one hands its bit on.
    let isOverOwned = former.map { !$0.isCached || $0.hidesOwned } ?? false
    return SizeClass(
      rawValue: rawValue & Self.touchedBit | Self.cachedBit
        | (isOverOwned ? Self.overOwnedBit : 0) | max(code / 2, 1))
  }

  /// The class of the key once its value is evicted; it must go on to hide what the user wrote.
  var afterEviction: SizeClass { isCached && !hidesOwned ? .evicted : .deleted }

  /// Whether the key is deleted, or its cached value was evicted.
  package var isDeleted: Bool { code == 0 }

  /// Whether the value is cached, or was until it was evicted.
  package var isCached: Bool { rawValue & Self.cachedBit != 0 }

  /// Whether the key's value is cached and older entries may be the user's own.
  var hidesOwned: Bool { isCached && rawValue & Self.overOwnedBit != 0 }

  /// Whether the newest entry is a touch.
  package var isTouched: Bool {
    get { rawValue & Self.touchedBit != 0 }
    set { rawValue = newValue ? rawValue | Self.touchedBit : rawValue & ~Self.touchedBit }
  }

  /// The size class from 1 to 63; 0 for a deleted key.
  private var code: UInt8 { isCached ? 2 * (rawValue & 0x1f) : rawValue & 0x3f }

  /// The middle of the class, in bytes; 0 for a deleted key.
  package var approximateBytes: Int {
    guard code > 0 else { return 0 }
    let (octave, third) = (Int(code) - 1).quotientAndRemainder(dividingBy: 3)
    let base = 1 << (octave + Self.leastOctave)
    return base + base * (2 * third + 1) / 6
  }
}
