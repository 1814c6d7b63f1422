// SAFETY: every load lies below the length that was compared just before it; functions that are
// marked unsafe leave the comparison to their callers.

extension RawSpan {
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

  /// The byte at an offset, which must lie within the span.
  ///
  /// The precondition finds errors of the engine; where callers have compared the offset with the
  /// length before, the compiler leaves it out.
  @inlinable
  @inline(__always)
  package func byte(_ offset: Int) -> UInt8 {
    precondition(offset >= 0 && offset < byteCount)
    return unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
  }

  /// The eight bytes from `offset` on as a number that sorts as they do, with zeros behind the end.
  /// - Parameter offset: 0 or more, also beyond the end. With a negative one the number has no
  ///   use or the call traps, but nothing outside is read.
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

  /// How many of `count` bytes from `offset` on equal those of `other` from `start` on, until the
  /// first that differs.
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

  /// Whether the bytes begin with others.
  package func hasPrefix(_ prefix: RawSpan) -> Bool {
    byteCount >= prefix.byteCount && extracting(first: prefix.byteCount).isEqual(to: prefix)
  }

  /// How many bytes both have in common at their beginning.
  package func commonPrefix(with other: RawSpan) -> Int {
    let limit = min(byteCount, other.byteCount)
    var position = 0
    while position <= limit - 8 {
      let differing = unsafe load64(position) ^ other.load64(position)
      // The words are little-endian: the lowest bit that differs is in the first byte that does.
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
