// SAFETY: `fixed` copies the bytes of an integer that lives until the copy is made.

/// Builds the bytes of a file format: appends one field after the other, integers little-endian.
package struct ByteWriter: Sendable {
  package var bytes: [UInt8]

  package init(capacity: Int = 0) {
    bytes = []
    bytes.reserveCapacity(capacity)
  }

  package var count: Int { bytes.count }

  package mutating func u8(_ value: UInt8) { bytes.append(value) }
  package mutating func u16(_ value: UInt16) { fixed(value.littleEndian) }
  package mutating func u32(_ value: UInt32) { fixed(value.littleEndian) }
  package mutating func u64(_ value: UInt64) { fixed(value.littleEndian) }

  /// An unsigned LEB128 number: seven bits a byte, the lowest first.
  @inline(__always)
  package mutating func varint(_ value: UInt64) {
    if value < 0x80 { return bytes.append(UInt8(truncatingIfNeeded: value)) }
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  /// A count or length as an unsigned LEB128 number; a negative one traps.
  package mutating func varint(_ value: Int) { varint(UInt64(value)) }

  /// A signed number, zigzag-coded, so that numbers near 0 are short on both sides.
  package mutating func zigzag(_ value: Int64) {
    varint(UInt64(bitPattern: (value << 1) ^ (value >> 63)))
  }

  package mutating func raw(_ more: [UInt8]) { bytes.append(contentsOf: more) }
  package mutating func raw(_ more: RawSpan) { bytes.append(copying: more) }

  /// Varint length and bytes.
  package mutating func blob(_ more: [UInt8]) {
    varint(more.count)
    raw(more)
  }

  /// Varint length and UTF-8 bytes.
  package mutating func text(_ text: String) { blob(Array(text.utf8)) }

  package mutating func zeros(_ count: Int) {
    bytes.append(contentsOf: repeatElement(0, count: count))
  }

  /// Overwrites four bytes that were appended before, with a number known only later.
  package mutating func patch(u32 value: UInt32, at offset: Int) {
    for i in 0..<4 { bytes[offset + i] = UInt8(truncatingIfNeeded: value >> (8 * UInt32(i))) }
  }

  /// Overwrites eight bytes that were appended before, with a number known only later.
  package mutating func patch(u64 value: UInt64, at offset: Int) {
    for i in 0..<8 { bytes[offset + i] = UInt8(truncatingIfNeeded: value >> (8 * UInt64(i))) }
  }

  @inline(__always)
  private mutating func fixed<T: FixedWidthInteger>(_ value: T) {
    unsafe withUnsafeBytes(of: value) { unsafe bytes.append(contentsOf: $0) }
  }
}

extension [UInt8] {
  /// Appends the lowest bytes of a number, little-endian.
  @inline(__always)
  mutating func append(_ value: UInt64, bytes count: Int) {
    for byte in 0..<count { append(UInt8(truncatingIfNeeded: value >> UInt64(8 * byte))) }
  }
}

extension MutableRawSpan {
  /// Overwrites existing bytes with a number, little-endian.
  @inline(__always)
  mutating func put(_ value: some FixedWidthInteger & BitwiseCopyable, at offset: Int) {
    storeBytes(of: value.littleEndian, toByteOffset: offset, as: type(of: value))
  }
  /// Overwrites existing bytes with an unsigned LEB128 number.
  /// - Returns: the offset behind its last byte.
  @inline(__always)
  mutating func put(varint value: UInt64, at offset: Int) -> Int {
    var (rest, end) = (value, offset)
    while rest >= 0x80 {
      put(UInt8(truncatingIfNeeded: rest) | 0x80, at: end)
      rest >>= 7
      end += 1
    }
    put(UInt8(truncatingIfNeeded: rest), at: end)
    return end + 1
  }
}
