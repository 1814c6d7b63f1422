internal import TidemarkEngine

/// Base64 after RFC 4648, section 4: the standard alphabet with padding.
///
/// Decoding is strict, so that each sequence of bytes has one spelling: no white space, no missing
/// padding, no stray bits in the last character.
package enum Base64 {
  private static let alphabet: [UInt8] = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// The value of each character, 0xff for those outside the alphabet.
  private static let values: [UInt8] = {
    var table = [UInt8](repeating: 0xff, count: 256)
    for (value, character) in alphabet.enumerated() { table[Int(character)] = UInt8(value) }
    return table
  }()

  /// How many characters `count` bytes take.
  package static func encodedCount(_ count: Int) -> Int { (count + 2) / 3 * 4 }

  /// Appends the characters for some bytes.
  package static func encode(_ bytes: RawSpan, into text: inout [UInt8]) {
    let count = bytes.byteCount
    let alphabet = Self.alphabet
    text.reserveCapacity(text.count + encodedCount(count))
    var offset = 0
    while offset < count {
      let left = count - offset
      let a = bytes.byte(offset)
      let b = left > 1 ? bytes.byte(offset + 1) : 0
      let c = left > 2 ? bytes.byte(offset + 2) : 0
      text.append(alphabet[Int(a >> 2)])
      text.append(alphabet[Int((a & 0x03) << 4 | b >> 4)])
      text.append(left > 1 ? alphabet[Int((b & 0x0f) << 2 | c >> 6)] : UInt8(ascii: "="))
      text.append(left > 2 ? alphabet[Int(c & 0x3f)] : UInt8(ascii: "="))
      offset += 3
    }
  }

  /// The bytes that some characters stand for; nil when they are no base64.
  package static func decode(_ text: RawSpan) -> [UInt8]? {
    var bytes = [UInt8](copying: text)
    let count = bytes.withMutableRawSpan { buffer in
      decode(in: &buffer, 0..<buffer.byteCount)
    }
    guard let count else { return nil }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  /// Replaces characters by the bytes they stand for, which are fewer.
  /// - Parameters:
  ///   - buffer: holds the characters.
  ///   - range: where; the bytes begin at the same place.
  /// - Returns: where the bytes end; nil when the characters are no base64.
  static func decode(in buffer: inout MutableRawSpan, _ range: Range<Int>) -> Int? {
    precondition(range.lowerBound >= 0 && range.upperBound <= buffer.byteCount)
    guard !range.isEmpty else { return range.lowerBound }
    guard range.count % 4 == 0 else { return nil }
    let values = Self.values
    let last = range.upperBound - 4
    var to = range.lowerBound
    for from in stride(from: range.lowerBound, to: last, by: 4) {
      var bits: UInt32 = 0
      for i in 0..<4 {
        let value = values[Int(buffer.bytes.byte(from + i))]
        guard value < 64 else { return nil }
        bits = bits << 6 | UInt32(value)
      }
      store(bits, 3, in: &buffer, at: to)
      to += 3
    }
    return decodeLast(in: &buffer, from: last, to: to, values)
  }

  /// The last four characters, of which one or two may be padding.
  private static func decodeLast(
    in buffer: inout MutableRawSpan, from: Int, to: Int, _ values: [UInt8]
  ) -> Int? {
    var padding = 0
    if buffer.bytes.byte(from + 3) == UInt8(ascii: "=") {
      padding = buffer.bytes.byte(from + 2) == UInt8(ascii: "=") ? 2 : 1
    }
    var bits: UInt32 = 0
    for i in 0..<4 - padding {
      let value = values[Int(buffer.bytes.byte(from + i))]
      guard value < 64 else { return nil }
      bits = bits << 6 | UInt32(value)
    }
    bits <<= 6 * UInt32(padding)
    let count = 3 - padding
    guard bits & (0xff_ffff >> (8 * UInt32(count))) == 0 else { return nil }
    store(bits, count, in: &buffer, at: to)
    return to + count
  }

  /// Stores the highest `count` of three bytes.
  @inline(__always)
  private static func store(
    _ bits: UInt32, _ count: Int, in buffer: inout MutableRawSpan, at offset: Int
  ) {
    for i in 0..<count {
      let byte = UInt8(truncatingIfNeeded: bits >> (16 - 8 * UInt32(i)))
      buffer.storeBytes(of: byte, toByteOffset: offset + i, as: UInt8.self)
    }
  }
}
