/// Bytes that do not follow their format.
package struct FormatError: Error, Sendable, Hashable {
  /// The fault, in words for a person.
  package var reason: String
  /// Written by a later version of the format rather than damaged.
  package var isNewer: Bool
  /// Written by an earlier version of the format, which is not read any more.
  package var isOlder: Bool

  package init(_ reason: String, isNewer: Bool = false, isOlder: Bool = false) {
    self.reason = reason
    self.isNewer = isNewer
    self.isOlder = isOlder
  }
}

// SAFETY: every load is bounds-checked first; the loaded types have no invalid patterns.

extension RawSpan {
  @inline(__always)
  package func u8(at offset: Int) throws(FormatError) -> UInt8 { try number(at: offset) }
  @inline(__always)
  package func u16(at offset: Int) throws(FormatError) -> UInt16 { try number(at: offset) }
  @inline(__always)
  package func u32(at offset: Int) throws(FormatError) -> UInt32 { try number(at: offset) }
  @inline(__always)
  package func u64(at offset: Int) throws(FormatError) -> UInt64 { try number(at: offset) }

  @inline(__always)
  fileprivate func number<N: FixedWidthInteger & BitwiseCopyable>(
    at offset: Int
  ) throws(FormatError) -> N {
    guard offset >= 0, offset <= byteCount - MemoryLayout<N>.size else {
      throw FormatError("ends too early")
    }
    return unsafe N(littleEndian: unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: N.self))
  }

  /// The bytes from `offset` on, `count` of them.
  @_lifetime(copy self)
  @inline(__always)
  package func slice(_ offset: Int, _ count: Int) throws(FormatError) -> RawSpan {
    guard offset >= 0, count >= 0, offset <= byteCount, count <= byteCount - offset else {
      throw FormatError("ends too early")
    }
    return unsafe extracting(unchecked: offset..<(offset + count))
  }

  package var isZero: Bool {
    var offset = 0
    while offset <= byteCount - 8 {
      if unsafe load64(offset) != 0 { return false }
      offset += 8
    }
    while offset < byteCount {
      if unsafe load8(offset) != 0 { return false }
      offset += 1
    }
    return true
  }
}

/// Reads a format's fields one after the other; every read is checked against the end.
package struct ByteReader: ~Escapable {
  package let bytes: RawSpan
  package var offset: Int

  @_lifetime(copy bytes)
  package init(_ bytes: RawSpan, at offset: Int = 0) {
    self.bytes = bytes
    self.offset = offset
  }

  package var remaining: Int { bytes.byteCount - offset }

  package mutating func u8() throws(FormatError) -> UInt8 { try number() }
  package mutating func u16() throws(FormatError) -> UInt16 { try number() }
  package mutating func u32() throws(FormatError) -> UInt32 { try number() }
  package mutating func u64() throws(FormatError) -> UInt64 { try number() }

  @inline(__always)
  private mutating func number<N: FixedWidthInteger & BitwiseCopyable>() throws(FormatError) -> N {
    let value: N = try bytes.number(at: offset)
    offset += MemoryLayout<N>.size
    return value
  }

  /// An unsigned LEB128 number of at most ten bytes; overlong forms are refused.
  @inline(__always)
  package mutating func varint() throws(FormatError) -> UInt64 {
    let first = try bytes.u8(at: offset)
    offset += 1
    if first < 0x80 { return UInt64(first) }
    return try varintTail(first)
  }

  private mutating func varintTail(_ first: UInt8) throws(FormatError) -> UInt64 {
    var value = UInt64(first & 0x7f)
    var shift: UInt64 = 7
    while true {
      let byte = try bytes.u8(at: offset)
      offset += 1
      if shift == 63, byte > 1 { throw FormatError("number too long") }
      value |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 {
        if byte == 0 { throw FormatError("number not in its shortest form") }
        return value
      }
      shift += 7
    }
  }

  /// A varint that must not exceed `limit`.
  @inline(__always)
  package mutating func varint(atMost limit: Int) throws(FormatError) -> Int {
    let value = try varint()
    guard limit >= 0, value <= UInt64(limit) else { throw FormatError("number out of bounds") }
    return Int(value)
  }

  /// A signed number, zigzag-coded.
  package mutating func zigzag() throws(FormatError) -> Int64 {
    let value = try varint()
    return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }

  /// Passes over `count` bytes and returns where they began.
  @inline(__always)
  package mutating func skip(_ count: Int) throws(FormatError) -> Int {
    guard count >= 0, count <= bytes.byteCount - offset else { throw FormatError("ends too early") }
    let start = offset
    offset += count
    return start
  }

  /// A copy of the next `count` bytes.
  package mutating func array(_ count: Int) throws(FormatError) -> [UInt8] {
    let start = try skip(count)
    return [UInt8](copying: try bytes.slice(start, count))
  }

  /// Varint length and bytes.
  /// - Parameter limit: most bytes; nil for as many as are left.
  package mutating func blob(atMost limit: Int? = nil) throws(FormatError) -> [UInt8] {
    try array(try varint(atMost: limit ?? remaining))
  }

  /// Reads a version byte; any other than `version` counts as one of a later version.
  package mutating func version(_ version: UInt8) throws(FormatError) {
    if try u8() != version { throw FormatError("written by another version", isNewer: true) }
  }
}
