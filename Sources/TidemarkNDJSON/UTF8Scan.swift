internal import TidemarkEngine

/// Strict UTF-8, after table 3-7 of the Unicode Standard: no overlong forms, no surrogates,
/// nothing above U+10FFFF.
enum UTF8Scan {
  /// The length of the well-formed sequence of two to four bytes at `offset`, 0 when there is none.
  @inline(__always)
  static func sequenceLength(_ bytes: RawSpan, at offset: Int) -> Int {
    let left = bytes.byteCount - offset
    guard left >= 2 else { return 0 }
    let lead = bytes.byte(offset)
    let second = bytes.byte(offset + 1)
    if lead < 0xe0 { return lead >= 0xc2 && isContinuation(second) ? 2 : 0 }
    guard left >= 3, isContinuation(bytes.byte(offset + 2)) else { return 0 }
    if lead < 0xf0 {
      let low: UInt8 = lead == 0xe0 ? 0xa0 : 0x80
      let high: UInt8 = lead == 0xed ? 0x9f : 0xbf
      return second >= low && second <= high ? 3 : 0
    }
    guard left >= 4, lead <= 0xf4, isContinuation(bytes.byte(offset + 3)) else { return 0 }
    let low: UInt8 = lead == 0xf0 ? 0x90 : 0x80
    let high: UInt8 = lead == 0xf4 ? 0x8f : 0xbf
    return second >= low && second <= high ? 4 : 0
  }

  @inline(__always)
  private static func isContinuation(_ byte: UInt8) -> Bool { byte & 0xc0 == 0x80 }
}
