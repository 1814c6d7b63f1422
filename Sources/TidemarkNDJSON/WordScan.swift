internal import TidemarkEngine

// SAFETY: loads are preceded by a comparison with the length; static text lives for ever.

/// Eight bytes at a time: the searches that text formats need, as arithmetic on one word.
///
/// A mark is the top bit of a byte. Adding to the lower seven bits only never carries into the
/// next byte, so each mark is exact; after "Determine if a word has a zero byte" in Sean
/// Anderson's Bit Twiddling Hacks.
enum WordScan {
  @inline(__always)
  private static var ones: UInt64 { 0x0101_0101_0101_0101 }
  @inline(__always)
  private static var tops: UInt64 { 0x8080_8080_8080_8080 }

  /// Marks the bytes that end a run of plain text in a JSON string: quote, backslash, control
  /// characters, and bytes outside ASCII.
  @inline(__always)
  static func stringStops(_ word: UInt64) -> UInt64 {
    let low = word & ~tops
    let notQuote = (low ^ (0x22 &* ones)) &+ ~tops
    let notBackslash = (low ^ (0x5c &* ones)) &+ ~tops
    let notControl = low &+ (0x60 &* ones)
    return (~(notQuote & notBackslash & notControl) | word) & tops
  }

  /// Marks the line feeds.
  @inline(__always)
  static func lineFeeds(_ word: UInt64) -> UInt64 {
    let low = word & ~tops
    return ~(((low ^ (0x0a &* ones)) &+ ~tops) | word) & tops
  }

  /// How many bytes stand before the lowest mark.
  @inline(__always)
  static func bytesBefore(_ marks: UInt64) -> Int { marks.trailingZeroBitCount >> 3 }
}

extension RawSpan {
  /// Eight bytes, first byte lowest, from an offset; all of them must lie within.
  @inline(__always)
  func word(_ offset: Int) -> UInt64 {
    precondition(offset >= 0 && offset <= byteCount &- 8)
    return unsafe UInt64(
      littleEndian: unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
  }

  /// Whether these are the bytes of `text`.
  package func holds(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard byteCount == count else { return false }
    let theirs = unsafe UnsafeRawPointer(text.utf8Start)
    var offset = 0
    while offset &+ 4 <= count {
      guard
        unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt32.self)
          == theirs.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      else { return false }
      offset &+= 4
    }
    while offset < count {
      guard unsafe byte(offset) == theirs.load(fromByteOffset: offset, as: UInt8.self) else {
        return false
      }
      offset &+= 1
    }
    return true
  }
}
