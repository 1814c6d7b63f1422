// SAFETY: callers of the loads have compared the offset with the length before.

/// Eight bytes at a time: the searches that text formats need, as arithmetic on one word.
///
/// After "Determine if a word has a byte less than n" and "… equal to n" in Sean Anderson's Bit
/// Twiddling Hacks. A mark is the top bit of a byte. Borrows can set false marks, but only above
/// a true one, so the lowest mark is always right.
enum WordScan {
  @inline(__always)
  private static var ones: UInt64 { 0x0101_0101_0101_0101 }
  @inline(__always)
  private static var tops: UInt64 { 0x8080_8080_8080_8080 }

  /// Marks the bytes that end a run of plain text in a JSON string: quote, backslash, control
  /// characters, and bytes outside ASCII.
  @inline(__always)
  static func stringStops(_ word: UInt64) -> UInt64 {
    (escapes(word) | word) & tops
  }

  /// Marks the bytes that a JSON string must escape; marks of bytes outside ASCII may be set too.
  @inline(__always)
  private static func escapes(_ word: UInt64) -> UInt64 {
    let quote = word ^ (0x22 &* ones)
    let backslash = word ^ (0x5c &* ones)
    return ((word &- 0x20 &* ones) & ~word)
      | ((quote &- ones) & ~quote)
      | ((backslash &- ones) & ~backslash)
  }

  /// Marks exactly the bytes that are a line feed, and no others.
  @inline(__always)
  static func lineFeeds(_ word: UInt64) -> UInt64 {
    let x = word ^ (0x0a &* ones)
    return ~(((x & ~tops) &+ ~tops) | x | ~tops)
  }

  /// Whether any of 32 bytes is a line feed.
  @inline(__always)
  static func hasLineFeed(_ a: UInt64, _ b: UInt64, _ c: UInt64, _ d: UInt64) -> Bool {
    zeroHint(a) | zeroHint(b) | zeroHint(c) | zeroHint(d) != 0
  }

  @inline(__always)
  private static func zeroHint(_ word: UInt64) -> UInt64 {
    let x = word ^ (0x0a &* ones)
    return (x &- ones) & ~x & tops
  }

  /// How many bytes stand before the lowest mark.
  @inline(__always)
  static func bytesBefore(_ marks: UInt64) -> Int { marks.trailingZeroBitCount >> 3 }
}

extension RawSpan {
  /// The byte at an offset that the caller has checked.
  @unsafe
  @inline(__always)
  func byte(_ offset: Int) -> UInt8 {
    unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
  }

  /// Eight bytes, first byte lowest, at an offset that the caller has checked.
  @unsafe
  @inline(__always)
  func word(_ offset: Int) -> UInt64 {
    unsafe UInt64(
      littleEndian: unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
  }

  /// Whether these are the bytes of `text`.
  func holds(_ text: StaticString) -> Bool {
    guard byteCount == text.utf8CodeUnitCount else { return false }
    return unsafe withUnsafeBytes { mine in
      text.withUTF8Buffer { unsafe mine.elementsEqual($0) }
    }
  }
}
