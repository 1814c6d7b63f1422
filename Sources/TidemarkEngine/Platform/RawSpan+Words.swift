// SAFETY: every load lies below the length that was compared just before it; those of the functions
// that are marked unsafe leave that to their callers.

extension RawSpan {
  /// The byte at an offset.
  @unsafe
  @inline(__always)
  func load8(_ offset: Int) -> UInt8 {
    unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
  }

  /// The little-endian number of four bytes at an offset.
  @unsafe
  @inline(__always)
  func load32(_ offset: Int) -> UInt32 {
    unsafe UInt32(
      littleEndian: unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt32.self))
  }

  /// The little-endian number of eight bytes at an offset.
  @unsafe
  @inline(__always)
  func load64(_ offset: Int) -> UInt64 {
    unsafe UInt64(
      littleEndian: unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
  }

  /// The byte at an offset, which must lie within.
  ///
  /// The check is for errors of ours; callers compare with the length before, and the compiler then
  /// leaves it out.
  @inlinable
  @inline(__always)
  package func byte(_ offset: Int) -> UInt8 {
    precondition(offset >= 0 && offset < byteCount)
    return unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
  }

  /// The eight bytes from `offset` on as a number that sorts like them; zeros behind the end.
  @inline(__always)
  package func bigEndianWord(at offset: Int) -> UInt64 {
    if offset >= 0, offset <= byteCount - 8 {
      return unsafe UInt64(
        bigEndian: unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
    }
    var word: UInt64 = 0
    var position = max(offset, 0)
    while position < byteCount {
      word |= UInt64(unsafe load8(position)) << UInt64(56 - 8 * (position - offset))
      position += 1
    }
    return word
  }

  /// How many of `count` bytes from `offset` on are those of `other` from `start` on.
  @inline(__always)
  func commonPrefix(_ offset: Int, _ count: Int, with other: RawSpan, from start: Int) -> Int {
    precondition(offset >= 0 && count >= 0 && offset <= byteCount && count <= byteCount - offset)
    precondition(start >= 0 && start <= other.byteCount)
    let limit = min(count, other.byteCount - start)
    var position = 0
    while position < limit {
      if unsafe load8(offset &+ position) != other.load8(start &+ position) { break }
      position &+= 1
    }
    return position
  }

  /// How many bytes both have in common at the front.
  package func commonPrefix(with other: RawSpan) -> Int {
    let limit = min(byteCount, other.byteCount)
    var position = 0
    while position <= limit - 8 {
      let differing = unsafe load64(position) ^ other.load64(position)
      if differing != 0 { return position + differing.trailingZeroBitCount >> 3 }
      position += 8
    }
    while position < limit {
      if unsafe load8(position) != other.load8(position) { return position }
      position += 1
    }
    return limit
  }
}
