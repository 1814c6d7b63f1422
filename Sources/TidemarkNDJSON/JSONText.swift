internal import TidemarkEngine

// SAFETY: loads are preceded by a comparison with the length; the buffer that is stored to was
// made as long as the first pass found the text to be, and one word longer.

/// Writes text as the inside of a JSON string.
package enum JSONText {
  /// How many bytes the text takes with its escapes; nil when it is not UTF-8.
  package static func escapedCount(_ bytes: RawSpan) -> Int? {
    let length = bytes.byteCount
    var count = length
    var from = 0
    while true {
      while from <= length &- 8 {
        let stops = WordScan.stringStops(bytes.word(from))
        from &+= stops == 0 ? 8 : WordScan.bytesBefore(stops)
        if stops != 0 { break }
      }
      guard from < length else { return count }
      let byte = bytes.byte(from)
      if byte < 0x80 {
        from &+= 1
        count &+= extra(byte)
      } else {
        let sequence = UTF8Scan.sequenceLength(bytes, at: from)
        guard sequence > 0 else { return nil }
        from &+= sequence
      }
    }
  }

  /// Appends the text with its escapes.
  /// - Parameters:
  ///   - bytes: the text, which must be UTF-8.
  ///   - count: what ``escapedCount(_:)`` said of it.
  package static func append(_ bytes: RawSpan, escapedCount count: Int, to text: inout [UInt8]) {
    if count == bytes.byteCount {
      text.append(copying: bytes)
      return
    }
    let start = text.count
    text.append(addingCapacity: count + 8) { $0.append(repeating: 0, count: count + 8) }
    text.withMutableRawSpan { buffer in
      unsafe escape(bytes, into: &buffer, at: start)
    }
    text.removeLast(8)
  }

  @unsafe
  private static func escape(_ bytes: RawSpan, into buffer: inout MutableRawSpan, at start: Int) {
    let length = bytes.byteCount
    var from = 0
    var to = start
    while true {
      while from <= length &- 8 {
        let word = bytes.word(from)
        unsafe buffer.storeBytes(
          of: word.littleEndian, toUncheckedByteOffset: to, as: UInt64.self)
        let stops = WordScan.stringStops(word)
        let run = stops == 0 ? 8 : WordScan.bytesBefore(stops)
        from &+= run
        to &+= run
        if stops != 0 { break }
      }
      guard from < length else { return }
      let byte = bytes.byte(from)
      from &+= 1
      let letters = escape(byte)
      unsafe buffer.storeBytes(
        of: letters.littleEndian, toUncheckedByteOffset: to, as: UInt64.self)
      to &+= 1 &+ extra(byte)
    }
  }

  /// How many bytes more than one an ASCII character takes.
  @inline(__always)
  private static func extra(_ byte: UInt8) -> Int {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x08, 0x09, 0x0a, 0x0c, 0x0d: 1
    case 0x00..<0x20: 5
    default: 0
    }
  }

  /// A byte or its escape, first character lowest.
  @inline(__always)
  private static func escape(_ byte: UInt8) -> UInt64 {
    let letter: UInt8
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): letter = byte
    case 0x08: letter = UInt8(ascii: "b")
    case 0x09: letter = UInt8(ascii: "t")
    case 0x0a: letter = UInt8(ascii: "n")
    case 0x0c: letter = UInt8(ascii: "f")
    case 0x0d: letter = UInt8(ascii: "r")
    case 0x00..<0x20:
      let low = byte & 0x0f
      let digit = low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10
      // The characters \ u 0 0, then the two digits.
      let four: UInt64 = 0x3030_755c
      return four | UInt64(UInt8(ascii: "0") + byte >> 4) << 32 | UInt64(digit) << 40
    default: return UInt64(byte)
    }
    return UInt64(UInt8(ascii: "\\")) | UInt64(letter) << 8
  }
}
