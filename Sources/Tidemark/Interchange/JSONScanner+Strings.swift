// SAFETY: loads are preceded by a comparison with the length. Stores go to a buffer that has, at
// every moment, room for what is left of the text and one word more: the first guard sees to
// that, and no step writes more bytes than it reads, a last whole word excepted.

extension JSONScanner {
  /// How much longer than the rest of the text a buffer for ``string(into:at:)`` must be, in bytes.
  package static var slack: Int { 8 }

  /// Decodes a string: resolves escapes, checks the UTF-8.
  ///
  /// Plain runs are searched and copied a word at a time.
  /// - Parameters:
  ///   - buffer: takes the decoded bytes, which are never more than the encoded ones; it must be
  ///     longer than the rest of the text by ``slack``.
  ///   - start: where in the buffer to begin; bytes behind the result may be overwritten too.
  /// - Returns: where in the buffer the decoded bytes end.
  package mutating func string(
    into buffer: inout MutableRawSpan, at start: Int
  ) throws(JSONError) -> Int {
    let opening = offset
    let length = bytes.byteCount
    precondition(start >= 0 && buffer.byteCount - start >= length - opening + Self.slack)
    try openString()
    var from = offset
    var to = start
    while true {
      while from <= length &- 8 {
        let word = unsafe bytes.word(from)
        unsafe buffer.storeBytes(
          of: word.littleEndian, toUncheckedByteOffset: to, as: UInt64.self)
        let stops = WordScan.stringStops(word)
        let run = stops == 0 ? 8 : WordScan.bytesBefore(stops)
        from &+= run
        to &+= run
        if stops != 0 { break }
      }
      guard from < length else { throw JSONError(.stringNotClosed, at: opening) }
      let byte = unsafe bytes.byte(from)
      if byte == UInt8(ascii: "\"") {
        offset = from &+ 1
        return to
      }
      if byte == UInt8(ascii: "\\") {
        let scalar = try escape(&from, opening)
        to = unsafe store(scalar, &buffer, to)
      } else if byte >= 0x80 {
        let count = UTF8Scan.sequenceLength(bytes, at: from)
        guard count > 0 else { throw JSONError(.notUTF8, at: from) }
        for i in 0..<count {
          let byte = unsafe bytes.byte(from &+ i)
          unsafe buffer.storeBytes(of: byte, toUncheckedByteOffset: to &+ i, as: UInt8.self)
        }
        from &+= count
        to &+= count
      } else {
        guard byte >= 0x20 else { throw JSONError(.controlCharacter, at: from) }
        unsafe buffer.storeBytes(of: byte, toUncheckedByteOffset: to, as: UInt8.self)
        from &+= 1
        to &+= 1
      }
    }
  }

  /// Passes over a string, which is checked like any other.
  package mutating func skipString() throws(JSONError) {
    let opening = offset
    let length = bytes.byteCount
    try openString()
    var from = offset
    while true {
      while from <= length &- 8 {
        let stops = WordScan.stringStops(unsafe bytes.word(from))
        from &+= stops == 0 ? 8 : WordScan.bytesBefore(stops)
        if stops != 0 { break }
      }
      guard from < length else { throw JSONError(.stringNotClosed, at: opening) }
      let byte = unsafe bytes.byte(from)
      if byte == UInt8(ascii: "\"") {
        offset = from &+ 1
        return
      }
      if byte == UInt8(ascii: "\\") {
        _ = try escape(&from, opening)
      } else if byte >= 0x80 {
        let count = UTF8Scan.sequenceLength(bytes, at: from)
        guard count > 0 else { throw JSONError(.notUTF8, at: from) }
        from &+= count
      } else {
        guard byte >= 0x20 else { throw JSONError(.controlCharacter, at: from) }
        from &+= 1
      }
    }
  }

  @inline(__always)
  private mutating func openString() throws(JSONError) {
    try expect(UInt8(ascii: "\""), .valueExpected)
  }

  /// The character that an escape stands for; `from` goes from its backslash to behind it.
  @inline(__always)
  private func escape(_ from: inout Int, _ opening: Int) throws(JSONError) -> UInt32 {
    guard from &+ 1 < bytes.byteCount else { throw JSONError(.stringNotClosed, at: opening) }
    let letter = unsafe bytes.byte(from &+ 1)
    let scalar: UInt32
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): scalar = UInt32(letter)
    case UInt8(ascii: "n"): scalar = 0x0a
    case UInt8(ascii: "t"): scalar = 0x09
    case UInt8(ascii: "r"): scalar = 0x0d
    case UInt8(ascii: "b"): scalar = 0x08
    case UInt8(ascii: "f"): scalar = 0x0c
    case UInt8(ascii: "u"): return try unicodeEscape(&from, opening)
    default: throw JSONError(.unknownEscape, at: from)
    }
    from &+= 2
    return scalar
  }

  @inline(never)
  private func unicodeEscape(_ from: inout Int, _ opening: Int) throws(JSONError) -> UInt32 {
    let unit = try hexadecimal(from, opening)
    guard unit & 0xf800 == 0xd800 else {
      from += 6
      return unit
    }
    guard unit < 0xdc00, from + 7 < bytes.byteCount,
      unsafe bytes.byte(from + 6) == UInt8(ascii: "\\"),
      unsafe bytes.byte(from + 7) == UInt8(ascii: "u")
    else { throw JSONError(.loneSurrogate, at: from) }
    let low = try hexadecimal(from + 6, opening)
    guard low & 0xfc00 == 0xdc00 else { throw JSONError(.loneSurrogate, at: from) }
    from += 12
    return 0x10000 + (unit & 0x3ff) << 10 + low & 0x3ff
  }

  /// The four digits of the escape whose backslash stands at `start`.
  private func hexadecimal(_ start: Int, _ opening: Int) throws(JSONError) -> UInt32 {
    var value: UInt32 = 0
    for position in (start + 2)..<(start + 6) {
      guard position < bytes.byteCount else { throw JSONError(.stringNotClosed, at: opening) }
      let byte = unsafe bytes.byte(position)
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
  private func store(_ scalar: UInt32, _ buffer: inout MutableRawSpan, _ start: Int) -> Int {
    var to = start
    func put(_ bits: UInt32) {
      unsafe buffer.storeBytes(
        of: UInt8(truncatingIfNeeded: bits), toUncheckedByteOffset: to, as: UInt8.self)
      to &+= 1
    }
    if scalar < 0x80 {
      put(scalar)
    } else if scalar < 0x800 {
      put(0xc0 | scalar >> 6)
      put(0x80 | scalar & 0x3f)
    } else if scalar < 0x10000 {
      put(0xe0 | scalar >> 12)
      put(0x80 | scalar >> 6 & 0x3f)
      put(0x80 | scalar & 0x3f)
    } else {
      put(0xf0 | scalar >> 18)
      put(0x80 | scalar >> 12 & 0x3f)
      put(0x80 | scalar >> 6 & 0x3f)
      put(0x80 | scalar & 0x3f)
    }
    return to
  }
}
