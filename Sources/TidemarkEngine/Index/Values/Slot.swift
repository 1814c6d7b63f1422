/// The index's knowledge of a key: its newest entry, never where that lies on disk.
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

/// The size of an entry, roughly: four classes an octave, so within about an eighth.
///
/// Zero means deleted. Bit 7 means that the newest entry is a touch, so that the value lies at
/// an older sequence.
package struct SizeClass: RawRepresentable, Sendable, Hashable {
  package var rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The class of a deleted key.
  package static let deleted = SizeClass(rawValue: 0)
  private static let touchedBit: UInt8 = 0x80
  private static let highest: UInt8 = 126

  /// The class of an entry of `bytes` bytes; anything from 2.5 GiB on shares the last one.
  package init(bytes: Int) {
    let value = UInt64(max(bytes, 1))
    let octave = 63 - value.leadingZeroBitCount
    let quarter =
      octave >= 2 ? (value >> UInt64(octave - 2)) & 3 : (value << UInt64(2 - octave)) & 3
    let code = 1 + 4 * octave + Int(quarter)
    rawValue = UInt8(min(code, Int(Self.highest)))
  }

  /// Whether the key is deleted.
  package var isDeleted: Bool { rawValue & ~Self.touchedBit == 0 }

  /// Whether the newest entry is a touch.
  package var isTouched: Bool {
    get { rawValue & Self.touchedBit != 0 }
    set { rawValue = newValue ? rawValue | Self.touchedBit : rawValue & ~Self.touchedBit }
  }

  /// The middle of the class, in bytes; 0 for a deleted key.
  package var approximateBytes: Int {
    let class7 = rawValue & ~Self.touchedBit
    guard class7 > 0 else { return 0 }
    let code = Int(class7) - 1
    let octave = code >> 2
    let mantissa = 4 + code & 3
    guard octave >= 2 else { return mantissa >> (2 - octave) }
    let width = 1 << (octave - 2)
    return mantissa * width + width / 2
  }
}
