internal import TidemarkEngine

// SAFETY: loads are preceded by a comparison with the length. Stores go to a buffer that has, at
// every moment, room for what is left of the text: a precondition sees to that, no step keeps more
// bytes than it reads, and bytes copied too far were read from the text too.

extension JSONScanner {
  /// Decodes a string: resolves escapes, checks the UTF-8.
  ///
  /// Plain runs are searched and copied 16 bytes at a time.
  /// - Parameters:
  ///   - buffer: takes the decoded bytes, which are never more than the encoded ones; it must be
  ///     as long as the rest of the text.
  ///   - start: where in the buffer to begin; bytes behind the result may be overwritten too.
  /// - Returns: where in the buffer the decoded bytes end.
  package mutating func string(
    into buffer: inout MutableRawSpan, at start: Int
  ) throws(JSONError) -> Int {
    precondition(start >= 0 && buffer.byteCount - start >= bytes.byteCount - offset)
    try openString()
    let source = bytes
    return try unsafe buffer.withUnsafeMutableBytes { (target) throws(JSONError) in
      try unsafe source.withUnsafeBytes { (source) throws(JSONError) in
        guard let to = target.baseAddress, let from = source.baseAddress else {
          throw JSONError(.stringNotClosed, at: offset)
        }
        return try unsafe decode(from, to, at: start)
      }
    }
  }

  /// The loop of ``string(into:at:)``, on plain pointers so that all of it stays in registers.
  @unsafe
  @inline(__always)
  private mutating func decode(
    _ source: UnsafeRawPointer, _ target: UnsafeMutableRawPointer, at start: Int
  ) throws(JSONError) -> Int {
    let opening = offset &- 1
    let length = bytes.byteCount
    var from = offset
    var to = start
    while true {
      while from &+ 16 <= length {
        let a = unsafe source.loadUnaligned(fromByteOffset: from, as: UInt64.self)
        let b = unsafe source.loadUnaligned(fromByteOffset: from &+ 8, as: UInt64.self)
        unsafe target.storeBytes(of: a, toByteOffset: to, as: UInt64.self)
        unsafe target.storeBytes(of: b, toByteOffset: to &+ 8, as: UInt64.self)
        let x = WordScan.stringStops(a)
        let y = WordScan.stringStops(b)
        if x | y == 0 {
          from &+= 16
          to &+= 16
          continue
        }
        let run = x != 0 ? WordScan.bytesBefore(x) : 8 &+ WordScan.bytesBefore(y)
        from &+= run
        to &+= run
        break
      }
      guard from < length else { throw JSONError(.stringNotClosed, at: opening) }
      let byte = unsafe source.load(fromByteOffset: from, as: UInt8.self)
      if byte == UInt8(ascii: "\\") {
        // Quotes are by far the most frequent where JSON stands in JSON.
        if from &+ 1 < length,
          unsafe source.load(fromByteOffset: from &+ 1, as: UInt8.self) == UInt8(ascii: "\"")
        {
          unsafe target.storeBytes(of: UInt8(ascii: "\""), toByteOffset: to, as: UInt8.self)
          from &+= 2
          to &+= 1
          continue
        }
        let (scalar, count) = try escape(from, opening)
        to = unsafe store(scalar, target, to)
        from &+= count
      } else if byte == UInt8(ascii: "\"") {
        offset = from &+ 1
        return to
      } else if byte >= 0x20, byte < 0x80 {
        unsafe target.storeBytes(of: byte, toByteOffset: to, as: UInt8.self)
        from &+= 1
        to &+= 1
      } else {
        let count = try sequences(from)
        unsafe (target + to).copyMemory(from: source + from, byteCount: count)
        from &+= count
        to &+= count
      }
    }
  }

  /// Passes over a string, which is checked like any other.
  /// - Returns: whether its characters stand there as they are, without escapes.
  @discardableResult
  package mutating func skipString() throws(JSONError) -> Bool {
    try openString()
    let opening = offset &- 1
    let length = bytes.byteCount
    var from = offset
    var isPlain = true
    while true {
      while from &+ 8 <= length {
        let stops = WordScan.stringStops(bytes.word(from))
        from &+= stops == 0 ? 8 : WordScan.bytesBefore(stops)
        if stops != 0 { break }
      }
      guard from < length else { throw JSONError(.stringNotClosed, at: opening) }
      let byte = bytes.byte(from)
      if byte == UInt8(ascii: "\\") {
        isPlain = false
        from &+= try escape(from, opening).count
      } else if byte == UInt8(ascii: "\"") {
        offset = from &+ 1
        return isPlain
      } else {
        from &+= byte >= 0x20 && byte < 0x80 ? 1 : try sequences(from)
      }
    }
  }

  /// The length of a run of characters outside ASCII, of which there must be one.
  @inline(never)
  private func sequences(_ start: Int) throws(JSONError) -> Int {
    guard bytes.byte(start) >= 0x80 else {
      throw JSONError(.controlCharacter, at: start)
    }
    var from = start
    repeat {
      let count = UTF8Scan.sequenceLength(bytes, at: from)
      guard count > 0 else { throw JSONError(.notUTF8, at: from) }
      from += count
    } while from < bytes.byteCount && bytes.byte(from) >= 0x80
    return from - start
  }

  @inline(__always)
  private mutating func openString() throws(JSONError) {
    try expect(UInt8(ascii: "\""), .valueExpected)
  }

  /// The character that the escape at `from` stands for, and how many bytes the escape has.
  @inline(never)
  private func escape(
    _ from: Int, _ opening: Int
  ) throws(JSONError) -> (scalar: UInt32, count: Int) {
    guard from + 1 < bytes.byteCount else { throw JSONError(.stringNotClosed, at: opening) }
    let letter = bytes.byte(from + 1)
    return switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): (UInt32(letter), 2)
    case UInt8(ascii: "n"): (0x0a, 2)
    case UInt8(ascii: "t"): (0x09, 2)
    case UInt8(ascii: "r"): (0x0d, 2)
    case UInt8(ascii: "b"): (0x08, 2)
    case UInt8(ascii: "f"): (0x0c, 2)
    case UInt8(ascii: "u"): try unicodeEscape(from, opening)
    default: throw JSONError(.unknownEscape, at: from)
    }
  }

  private func unicodeEscape(
    _ from: Int, _ opening: Int
  ) throws(JSONError) -> (scalar: UInt32, count: Int) {
    let unit = try hexadecimal(from, opening)
    guard unit & 0xf800 == 0xd800 else { return (unit, 6) }
    guard unit < 0xdc00, from + 7 < bytes.byteCount,
      bytes.byte(from + 6) == UInt8(ascii: "\\"),
      bytes.byte(from + 7) == UInt8(ascii: "u")
    else { throw JSONError(.loneSurrogate, at: from) }
    let low = try hexadecimal(from + 6, opening)
    guard low & 0xfc00 == 0xdc00 else { throw JSONError(.loneSurrogate, at: from) }
    return (0x10000 + (unit & 0x3ff) << 10 + low & 0x3ff, 12)
  }

  /// The four digits of the escape whose backslash stands at `start`.
  private func hexadecimal(_ start: Int, _ opening: Int) throws(JSONError) -> UInt32 {
    var value: UInt32 = 0
    for position in (start + 2)..<(start + 6) {
      guard position < bytes.byteCount else { throw JSONError(.stringNotClosed, at: opening) }
      let byte = bytes.byte(position)
      let letter = (byte | 0x20) &- UInt8(ascii: "a")
      if byte &- UInt8(ascii: "0") < 10 {
        value = value << 4 | UInt32(byte &- UInt8(ascii: "0"))
      } else if letter < 6 {
        value = value << 4 | UInt32(letter + 10)
      } else {
        throw JSONError(.badUnicodeEscape, at: start)
      }
    }
    return value
  }

  /// Stores a character as UTF-8 and returns where it ends.
  @unsafe
  @inline(__always)
  private func store(_ scalar: UInt32, _ target: UnsafeMutableRawPointer, _ start: Int) -> Int {
    if scalar < 0x80 {
      let byte = UInt8(truncatingIfNeeded: scalar)
      unsafe target.storeBytes(of: byte, toByteOffset: start, as: UInt8.self)
      return start &+ 1
    }
    return unsafe storeSequence(scalar, target, start)
  }

  @unsafe
  @inline(never)
  private func storeSequence(
    _ scalar: UInt32, _ target: UnsafeMutableRawPointer, _ start: Int
  ) -> Int {
    var to = start
    func put(_ bits: UInt32) {
      let byte = UInt8(truncatingIfNeeded: bits)
      unsafe target.storeBytes(of: byte, toByteOffset: to, as: UInt8.self)
      to &+= 1
    }
    if scalar < 0x800 {
      put(0xc0 | scalar >> 6)
    } else if scalar < 0x10000 {
      put(0xe0 | scalar >> 12)
      put(0x80 | scalar >> 6 & 0x3f)
    } else {
      put(0xf0 | scalar >> 18)
      put(0x80 | scalar >> 12 & 0x3f)
      put(0x80 | scalar >> 6 & 0x3f)
    }
    put(0x80 | scalar & 0x3f)
    return to
  }
}
